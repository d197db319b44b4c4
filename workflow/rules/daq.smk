# The DAQ buffer: writers at a fixed rate on any tier, measured with fio.

from neurotier.storage.daq.walk import Daq


# All cores, and points are kept one by one: as in a sweep.
rule run_daq:
    output:
        daq=places.workload("daq") / "daq.tsv",
        backlog=places.workload("daq") / "backlog.tsv",
    log:
        LOGS / "run_daq/run_daq.log",
    threads: CORES
    resources:
        probes=1,
        runtime=Daq.minutes(settings),
    params:
        results=RESULTS,
        room="daq",
        node_class=plan.node_class,
        daq=settings.to_json()["daq"],
        tiers=[settings.tiers[name] for name in settings.daq.tiers],
    message:
        "Writing at a fixed rate"
    script:
        "../scripts/run_workload.py"
