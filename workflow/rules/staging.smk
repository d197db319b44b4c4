# Data staging: writers hand readers time steps through Ray or ADIOS2, whose store is a file on any tier.

from neurotier.storage.staging.walk import Staging


# All cores: nothing else may run during a measurement. Points are kept one by one, and those that exist are not
# measured again, whatever else has changed in the configuration.
rule run_staging:
    output:
        staging=places.workload("staging") / "staging.tsv",
    log:
        LOGS / "run_staging/run_staging.log",
    threads: CORES
    resources:
        probes=1,
        runtime=Staging.minutes(settings),
    params:
        results=RESULTS,
        room="staging",
        node_class=plan.node_class,
        staging=settings.to_json()["staging"],
        tiers=[settings.tiers[name] for name in settings.staging.tiers],
    message:
        "Staging"
    script:
        "../scripts/run_workload.py"
