# The probe: what each tier can do, measured with fio.

from neurotier.storage.probe.plan import ProbePlan

probing = ProbePlan(plan, workflow.cores)


# A job for each tier, so that each is kept until something about it changes; all cores, since nothing else may run
# beside what is measured, another tier's probe least of all. The resource says the same to a cluster. Its priority has
# it done before anything that is measured itself, never in the midst of that.
rule probe_tier:
    output:
        table=places.probed("{tier}"),
    log:
        LOGS / "probe_tier/{tier}.log",
    wildcard_constraints:
        tier=r"[A-Za-z][A-Za-z0-9_-]*",
    priority: 1
    threads: workflow.cores or 1
    resources:
        probes=1,
    params:
        results=RESULTS,
        asked=lambda wildcards: probing.asked(wildcards.tier),
    message:
        "Probing tier {wildcards.tier}"
    script:
        "../scripts/probe_tier.py"


rule tabulate_probe:
    input:
        tables=probing.tables(),
    output:
        table=report(
            places.probe / "probe.tsv",
            caption="../report/probe_table.rst",
            category="Tiers",
        ),
    log:
        LOGS / "tabulate_probe/tabulate_probe.log",
    params:
        results=RESULTS,
    message:
        "Tabulating what the tiers can do"
    script:
        "../scripts/tabulate_probe.py"


rule draw_probe:
    input:
        rules.tabulate_probe.output,
    output:
        concurrency=report(
            places.probe_figures / "concurrency.svg",
            caption="../report/concurrency.rst",
            category="Tiers",
        ),
        one_stream=report(
            places.probe_figures / "one_stream.svg",
            caption="../report/one_stream.rst",
            category="Tiers",
        ),
        others=[
            places.probe_figures / f"{name}.{extension}"
            for name in ("concurrency", "one_stream")
            for extension in ("png", "tsv")
        ],
    log:
        LOGS / "draw_probe/draw_probe.log",
    params:
        results=RESULTS,
    message:
        "Drawing what the tiers can do"
    script:
        "../scripts/draw_probe.py"


rule write_probe:
    input:
        rules.tabulate_probe.output,
        rules.draw_probe.output,
    output:
        page=report(
            RESULTS / "probe.html",
            caption="../report/probe.rst",
            category="Tiers",
        ),
    log:
        LOGS / "write_probe/write_probe.log",
    params:
        results=RESULTS,
    message:
        "Writing the report on the tiers"
    script:
        "../scripts/write_probe.py"
