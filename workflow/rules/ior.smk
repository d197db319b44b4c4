# A file per process, written and read back by another, measured with fio: IOR's easy benchmark.

from neurotier.run.allocations import asks_for_nodes
from neurotier.storage.ior.walk import Ior


# All cores, and points are kept one by one: as in a sweep. For points of several nodes it is no job, and asks for nodes.
rule run_ior:
    output:
        ior=places.workload("ior") / "ior.tsv",
    log:
        LOGS / "run_ior/run_ior.log",
    threads: CORES
    resources:
        probes=1,
        runtime=Ior.minutes(settings),
    params:
        results=RESULTS,
        node_class=plan.node_class,
        ior=settings.to_json()["ior"],
        tiers=[settings.tiers[name] for name in settings.ior.tiers],
        over_nodes=elsewhere and max(settings.ior.nodes) > 1,
    message:
        "Writing and reading a file per process"
    script:
        "../scripts/run_ior.py"
