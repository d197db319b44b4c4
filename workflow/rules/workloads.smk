# Storage workloads, measured on any tier: for each a rule that measures, and a target. Their classes describe them.

from neurotier.pages import page_called
from neurotier.run.allocations import asks_for_nodes
from neurotier.storage.daq.walk import Daq
from neurotier.storage.ior.walk import Ior
from neurotier.storage.staging.walk import Staging
from neurotier.storage.sweep.walk import Sweep

# All cores: nothing else may run during a measurement. Points are kept one by one, and those that exist are not
# measured again, whatever else has changed in the configuration. IOR over several nodes is not submitted as a job, but
# allocates its nodes itself.
for workload in (Sweep, Daq, Ior, Staging):

    rule:
        name:
            f"run_{workload.target}"
        output:
            **page_called(workload.target).inputs(RESULTS),
        log:
            LOGS / f"run_{workload.target}/run_{workload.target}.log",
        threads: CORES
        resources:
            probes=1,
            runtime=workload.minutes(settings),
        params:
            results=RESULTS,
            target=workload.target,
            node_class=plan.node_class,
            asked=settings.to_json()[workload.target],
            tiers=[
                settings.tiers[name]
                for name in getattr(settings, workload.target).tiers
            ],
            over_nodes=workload is Ior and asks_for_nodes(settings.ior),
        message:
            workload.doing
        script:
            "../scripts/run_workload.py"

    rule:
        name:
            workload.target
        input:
            tables=getattr(rules, f"run_{workload.target}").output,
            page=RESULTS / f"{workload.target}.html",
