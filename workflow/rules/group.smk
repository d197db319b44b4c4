# The group stage: brain volumes over all participants, and what makes the derivatives BIDS datasets.


rule summarize_group:
    input:
        records=all_records,
    output:
        group=report(
            places.group / "group.tsv",
            caption="../report/group.rst",
            category="Brain volumes",
        ),
        summary=places.group / "summary.json",
    log:
        LOGS / "summarize_group/summarize_group.log",
    conda:
        "../envs/neurotier.yaml"
    params:
        results=RESULTS,
    message:
        "Summarising brain volumes"
    script:
        "../scripts/summarize_group.py"


rule describe_derivatives:
    input:
        dataset=places.index / "dataset.json",
        tool=places.index / "tool.json",
    output:
        description=places.derivatives / "{site_folder}dataset_description.json",
        readme=places.derivatives / "{site_folder}README",
    log:
        LOGS / "describe_derivatives/{site_folder}describe_derivatives.log",
    wildcard_constraints:
        site_folder=r"(?:(?!sub-)[^/]+/)*",
    conda:
        "../envs/neurotier.yaml"
    params:
        results=RESULTS,
    message:
        "Describing the derivatives of {wildcards.site_folder}"
    script:
        "../scripts/describe_derivatives.py"
