# The group stage: brain volumes over all participants.


rule summarize_group:
    input:
        complete=places.complete,
    output:
        group=report(
            places.group / "group.tsv",
            caption="../report/summarize_group.rst",
            category="Brain volumes",
        ),
        summary=places.group / "summary.json",
    log:
        LOGS / "summarize_group/summarize_group.log",
    params:
        results=RESULTS,
    message:
        "Summarising brain volumes"
    script:
        "../scripts/summarize_group.py"
