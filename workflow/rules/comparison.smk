# The comparison of a campaign's runs, of other results folders, and of the published experiment.


rule tabulate_comparison:
    input:
        campaign=campaign_done,
        runs=compared_tables,
    output:
        tables=[places.comparison / f"{name}.tsv" for name in comparison_tables()],
    log:
        LOGS / "tabulate_comparison/tabulate_comparison.log",
    conda:
        "../envs/neurotier.yaml"
    params:
        results=RESULTS,
        configuration=configuration,
    message:
        "Tabulating what is compared"
    script:
        "../scripts/tabulate_comparison.py"
