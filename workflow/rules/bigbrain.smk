# The BigBrain incrementation: what is compared, drawn and written of its runs, wherever they were made.

from neurotier.bigbrain.plan import BigBrainPlan
from neurotier.pages.bigbrain import figures as bigbrain_figures
from neurotier.pages.kit.registry import outputs

bigbrain = BigBrainPlan(settings, places, plan.node_class)


rule compare_bigbrain:
    input:
        **bigbrain.published,
        runs=places.bigbrain / "bigbrain_runs.tsv",
        predictions=places.bigbrain / "bigbrain_predictions.tsv",
    output:
        conditions=places.bigbrain / "bigbrain_conditions.tsv",
    log:
        LOGS / "compare_bigbrain/compare_bigbrain.log",
    params:
        results=RESULTS,
    message:
        "Comparing conditions of the BigBrain incrementation"
    script:
        "../scripts/compare_bigbrain.py"


rule write_bigbrain:
    input:
        **bigbrain.published,
        conditions=places.bigbrain / "bigbrain_conditions.tsv",
        runs=places.bigbrain / "bigbrain_runs.tsv",
        phases=places.bigbrain / "bigbrain_phases.tsv",
        spark=places.bigbrain / "bigbrain_spark.tsv",
    output:
        **outputs(
            bigbrain_figures.FIGURES,
            places.bigbrain / "figures",
            report,
            "BigBrain incrementation",
        ),
        page=report(
            RESULTS / "bigbrain.html",
            caption="../report/write_bigbrain.rst",
            category="BigBrain incrementation",
        ),
    log:
        LOGS / "write_bigbrain/write_bigbrain.log",
    params:
        results=RESULTS,
    message:
        "Writing the report of the BigBrain incrementation"
    script:
        "../scripts/write_bigbrain.py"
