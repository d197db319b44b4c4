# The participant stage: one job per participant, its intermediates on the work tier.


rule prepare_tool:
    input:
        image=plan.image_facts(),
    output:
        tool=places.index / "tool.json",
    log:
        LOGS / "prepare_tool/prepare_tool.log",
    params:
        results=RESULTS,
        tool=lambda wildcards: plan.tool(),
    message:
        "Looking for {params.tool[name]}, and having it ready"
    script:
        "../scripts/prepare_tool.py"


# Several participants may share a job. Records and derivatives are no outputs: Snakemake would remove those of everyone
# when one participant fails, and look at all of them before each job. Who is to be analysed is decided at each start
# (workflow/neurotier/run/batches.py).
rule analyze_participants:
    input:
        tool=places.index / "tool.json",
        image=plan.image_facts(),
        valid=valid_sites if plan.must_be_valid else [],
        markers=markers,
    output:
        marker=places.batch("{batch}"),
    log:
        LOGS / "analyze_participants/{batch}.log",
    priority: lambda wildcards: 10 + plan.urgency(wildcards.batch)
    threads: lambda wildcards: plan.batch_threads(wildcards.batch)
    resources:
        work_mb=lambda wildcards: plan.batch_work_mb(wildcards.batch),
        work_files=lambda wildcards: plan.batch_work_files(wildcards.batch),
        mem_mb=lambda wildcards, attempt: plan.batch_mem_mb(wildcards.batch, attempt),
        runtime=lambda wildcards, attempt: plan.batch_minutes(wildcards.batch, attempt),
    params:
        results=RESULTS,
        participants=lambda wildcards: plan.members(wildcards.batch),
        at_once=lambda wildcards, threads: plan.at_once(wildcards.batch, threads),
        beside=lambda wildcards, threads: plan.beside(wildcards.batch),  # with threads, none of what a job is done again for
        analysis=plan.analysis,
    message:
        "Analysing {params.participants} (batch {wildcards.batch})"
    shell:
        "python3 -m neurotier analyze-participants {params.participants} --results {params.results:q}"
        " --batch {wildcards.batch} --analysis {params.analysis} --at-once {params.at_once}"
        " --beside {params.beside}"
        " --threads {threads} --mem-mb {resources.mem_mb} --log {log:q}"


# If a participant has failed, this rule and with it the run fails, when all others are done.
rule require_participants:
    input:
        images=places.index / "images.tsv",
        analysed=analysed,
    output:
        complete=places.complete,
    log:
        LOGS / "require_participants/require_participants.log",
    params:
        results=RESULTS,
    message:
        "Looking whether all participants are done"
    script:
        "../scripts/require_participants.py"
