# The participant stage: the tool, and the pools through which participants pass, with their intermediates on the work
# tier.


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
        "Looking for {params.tool[name]}, and preparing it"
        + (
            ""
            if settings.image or not settings.in_containers
            else " outside a container: tool.{params.tool[name]}.image is not set"
        )
    script:
        "../scripts/prepare_tool.py"


# Participants pass through the pool of their share, which is a job: one locally, several on a cluster. Records and
# derivatives are not outputs: Snakemake would remove those of all participants when one fails, and check all of them
# before each job. Each start removes the markers of shares that lack a participant (neurotier/run/participants.py).
rule analyze_participants:
    input:
        tool=places.index / "tool.json",
        image=plan.image_facts(),
        valid=valid_sites,
        markers=markers,
    output:
        marker=places.share("{share}"),
    log:
        LOGS / "analyze_participants/{share}.log",
    priority: 10
    retries: 0 if on_cluster or plan.in_job else 3  # for a pool that was killed; on a cluster, the profile sets retries
    threads: lambda wildcards: plan.share(wildcards.share).threads
    resources:
        work_mb=lambda wildcards: plan.share(wildcards.share).work_mb,
        work_files=lambda wildcards: plan.share(wildcards.share).work_files,
        mem_mb=lambda wildcards, attempt: plan.share(wildcards.share, attempt).memory_mb,
        runtime=lambda wildcards, attempt: plan.share_minutes(wildcards.share, attempt),
        attempt=lambda wildcards, attempt: attempt,
    params:
        results=RESULTS,
        analysis=plan.analysis,
    message:
        "Analysing participants"
    shell:
        "exec python3 -m neurotier analyze-participants --share {wildcards.share} --results {params.results:q}"
        " --marker {output.marker:q} --analysis {params.analysis} --attempt {resources.attempt}"
        " --threads {threads} --mem-mb {resources.mem_mb} --work-mb {resources.work_mb}"
        " --work-files {resources.work_files} --log {log:q}"


# If a participant has failed, this rule and with it the run fails, but only when all others are done.
rule require_participants:
    input:
        images=places.images_table,
        analysed=analysed,
    output:
        complete=places.complete,
    log:
        LOGS / "require_participants/require_participants.log",
    params:
        results=RESULTS,
    script:
        "../scripts/require_participants.py"
