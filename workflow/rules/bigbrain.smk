# The BigBrain incrementation: what is compared of its runs, wherever they were made.

from neurotier.bigbrain.plan import BigBrainPlan

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
