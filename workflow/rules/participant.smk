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
        tool=plan.tool(),
    message:
        "Looking for {params.tool[name]}, and having it ready"
    script:
        "../scripts/prepare_tool.py"


# Several participants in one cluster job: all depend on the job that opens their batch, and share its group.
# Snakemake's own --group-components submits participants twice if the index exists at the start (snakemake#1628).
rule open_batch:
    output:
        marker=temp(places.batch("{batch}")),
    log:
        LOGS / "open_batch/{batch}.log",
    group:
        "participants_{batch}"
    message:
        "Opening batch {wildcards.batch}"
    shell:
        "date > {output.marker:q} 2> {log:q}"


# Functions that would give everyone the same are not asked: Snakemake takes 0.1 ms for each, of each participant.
# It reads the index without naming it as input. The index exists, as the participants are known from it; and for jobs
# with an input from a checkpoint, Snakemake does not check for changed params (another threshold, another image).
rule analyze_participant:
    input:
        tool=places.index / "tool.json",
        image=plan.image_facts(),
        valid=valid_site if plan.must_be_valid else [],
        markers=markers,
    output:
        derivatives=directory(places.analysed("{participant}", plan.is_app)),
        record=places.record("{participant}"),
    log:
        LOGS / "analyze_participant/{participant}.log",
    priority: 10
    group:
        (lambda wildcards: plan.group(wildcards.participant))
        if plan.is_batched
        else None
    threads: plan.threads
    resources:
        work_mb=lambda wildcards: plan.work_mb(wildcards.participant),
        mem_mb=lambda wildcards, attempt: plan.mem_mb(wildcards.participant, attempt),
    params:
        results=RESULTS,
        images=lambda wildcards: plan.contents(wildcards.participant),
        tool=plan.tool(),
    message:
        "Analysing {wildcards.participant}"
    shell:
        "python3 -m neurotier analyze-participant {wildcards.participant} --results {params.results:q} --log {log:q}"
