# The participant stage: one job per participant, its intermediates on the work tier.


rule prepare_tool:
    input:
        image=plan.image_facts(),
    output:
        tool=places.index / "tool.json",
    log:
        LOGS / "prepare_tool/prepare_tool.log",
    conda:
        "../envs/neurotier.yaml"
    params:
        results=RESULTS,
        tool=plan.tool(),
    message:
        "Looking for {params.tool[name]}, and having it ready"
    script:
        "../scripts/prepare_tool.py"


# It reads the index, but does not name it as input: the participants are known from it, so it is there; and Snakemake
# looks for changed params (another threshold, another image) only in jobs that no checkpoint's output leads into.
rule analyze_participant:
    input:
        tool=places.index / "tool.json",
        image=plan.image_facts(),
        valid=valid_site,
        got=got_marker,
    output:
        derivatives=directory(places.analysed("{participant}", plan.is_app)),
        record=places.record("{participant}"),
    log:
        LOGS / "analyze_participant/{participant}.log",
    priority: 10
    conda:
        "../envs/neurotier.yaml"
    threads: plan.threads
    resources:
        work_mb=lambda wildcards: plan.work_mb(wildcards.participant),
        mem_mb=lambda wildcards: plan.mem_mb(wildcards.participant),
    params:
        results=RESULTS,
        images=lambda wildcards: plan.contents(wildcards.participant),
        tool=plan.tool(),
    message:
        "Analysing {wildcards.participant}"
    shell:
        "python3 -m neurotier analyze-participant {wildcards.participant} --results {params.results:q} --log {log:q}"
