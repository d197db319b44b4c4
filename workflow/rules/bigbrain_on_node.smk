# The runs of the BigBrain incrementation on a cluster: one job, which has a node to itself. Blocks are made, read and
# checked there, so that they may be on the node's own tier, and no two runs differ in their node.


# All cores: nothing else may run during a measurement.
rule run_bigbrain:
    output:
        phases=places.bigbrain / "bigbrain_phases.tsv",
        runs=places.bigbrain / "bigbrain_runs.tsv",
        spark=places.bigbrain / "bigbrain_spark.tsv",
        predictions=places.bigbrain / "bigbrain_predictions.tsv",
    log:
        LOGS / "run_bigbrain/run_bigbrain.log",
    threads: CORES
    resources:
        probes=1,
    params:
        results=RESULTS,
        asked=bigbrain.node_configuration(configuration),
    message:
        "Incrementing blocks on a node"
    script:
        "../scripts/run_bigbrain.py"
