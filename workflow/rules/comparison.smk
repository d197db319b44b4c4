# The comparison: the runs of a campaign, of other results folders and of the published experiment, side by side.


rule tabulate_comparison:
    input:
        campaign=lambda wildcards: plan.campaign(),
        results=lambda wildcards: plan.compared_tables(),
    output:
        runs=places.comparison / "compared_runs.tsv",
        participants=places.comparison / "compared_participants.tsv",
        traffic=places.comparison / "compared_bytes.tsv",
    log:
        LOGS / "tabulate_comparison/tabulate_comparison.log",
    params:
        results=RESULTS,
        compared=lambda wildcards: settings.comparison.results,
        published=lambda wildcards: settings.published,
    message:
        "Tabulating what is compared"
    script:
        "../scripts/tabulate_comparison.py"
