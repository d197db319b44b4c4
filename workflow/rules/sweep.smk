# Storage sweeps: grids of block size, processes, pattern and queue depth, measured with fio on any tier.

from neurotier.storage.sweep.walk import Sweep


# All cores: nothing else may run during a measurement. Points are kept one by one, and those that exist are not
# measured again, whatever else has changed in the configuration.
rule run_sweep:
    output:
        sweep=places.sweep / "sweep.tsv",
    log:
        LOGS / "run_sweep/run_sweep.log",
    threads: CORES
    resources:
        probes=1,
        runtime=Sweep.minutes(settings),
    params:
        results=RESULTS,
        room="sweep",
        node_class=plan.node_class,
        sweep=settings.to_json()["sweep"],
        tiers=[settings.tiers[name] for name in settings.sweep.tiers],
    message:
        "Sweeping"
    script:
        "../scripts/run_workload.py"
