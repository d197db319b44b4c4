# Data staging: writers hand readers time steps through Ray or ADIOS2, whose store is a file on any tier.

from neurotier.pages.kit.registry import outputs
from neurotier.pages.staging import figures as staging_figures
from neurotier.storage.staging.grid import staging_minutes


# All cores: nothing else may run during a measurement. Points are kept one by one, and those that exist are not
# measured again, whatever else has changed in the configuration.
rule run_staging:
    output:
        points=places.workload("staging") / "staging.tsv",
        published=places.workload("staging") / "published.tsv",
    log:
        LOGS / "run_staging/run_staging.log",
    threads: CORES
    resources:
        probes=1,
        runtime=staging_minutes(settings.staging),
    params:
        results=RESULTS,
        node_class=plan.node_class,
        staging=settings.to_json()["staging"],
        tiers=[settings.tiers[name] for name in settings.staging.tiers],
    message:
        "Staging"
    script:
        "../scripts/run_staging.py"


rule draw_staging:
    input:
        points=places.workload("staging") / "staging.tsv",
    output:
        **outputs(
            staging_figures.FIGURES,
            places.workload_figures("staging"),
            report,
            "Staging",
        ),
    log:
        LOGS / "draw_staging/draw_staging.log",
    params:
        results=RESULTS,
    message:
        "Drawing the staging"
    script:
        "../scripts/draw_staging.py"


rule write_staging:
    input:
        points=places.workload("staging") / "staging.tsv",
        published=places.workload("staging") / "published.tsv",
        figures=rules.draw_staging.output,
    output:
        page=report(
            RESULTS / "staging.html",
            caption="../report/write_staging.rst",
            category="Staging",
        ),
    log:
        LOGS / "write_staging/write_staging.log",
    params:
        results=RESULTS,
    message:
        "Writing the report on the staging"
    script:
        "../scripts/write_staging.py"
