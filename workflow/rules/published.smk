# The published experiment, replayed from its raw logs: before the measurements it is compared with, never during one.

from neurotier.published.plan import asked_logs


rule tabulate_published:
    output:
        runs=places.published / "published_runs.tsv",
        phases=places.published / "published_phases.tsv",
        bids_app=places.published / "published_bids_app.tsv",
        skipped=places.published / "published_skipped.tsv",
        claims=places.published / "published_claims.tsv",
        predictions=places.published / "published_predictions.tsv",
        validation=places.published / "published_validation.tsv",
        parameters=places.published / "published_parameters.tsv",
    log:
        LOGS / "tabulate_published/tabulate_published.log",
    priority: 1
    threads: CORES
    params:
        results=RESULTS,
        logs=lambda wildcards: in_a_line(asked_logs)(settings.published),
    message:
        "Tabulating the published logs, and predicting their makespans"
    script:
        "../scripts/tabulate_published.py"
