# The probe: what each tier can do, measured with fio.

from neurotier.storage.probe.plan import ProbePlan

probing = ProbePlan(settings, places, CORES, plan.node_class, on_cluster)


# A job per tier, so that its result is kept until something about the tier changes. All cores, since nothing else may
# run during a measurement, least of all the probe of another tier; on a cluster, where the profile asks for a whole
# node, the resource does the same. The priority puts probes before other measurements, never among them.
rule probe_tier:
    output:
        table=probing.table("{tier}"),
    log:
        LOGS / "probe_tier/{tier}.log",
    wildcard_constraints:
        tier=r"[A-Za-z][A-Za-z0-9_-]*",
    priority: 1
    threads: CORES
    resources:
        probes=1,
        runtime=probing.minutes,
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
        table=places.probe / "probe.tsv",
    log:
        LOGS / "tabulate_probe/tabulate_probe.log",
    params:
        results=RESULTS,
    message:
        "Tabulating what the tiers can do"
    script:
        "../scripts/tabulate_probe.py"
