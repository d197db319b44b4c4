# The files that make the derivatives of a site a BIDS dataset.


rule describe_derivatives:
    input:
        dataset=places.dataset_facts,
        tool=places.index / "tool.json",
    output:
        description=places.derivatives / "{site_folder}dataset_description.json",
        readme=places.derivatives / "{site_folder}README",
    log:
        LOGS / "describe_derivatives/{site_folder}describe_derivatives.log",
    wildcard_constraints:
        site_folder=SITE_FOLDER,
    priority: 20  # before analyses: derivatives are saved in a dataset only once it is described
    params:
        results=RESULTS,
        as_dataset=settings.results_dataset,
    script:
        "../scripts/describe_derivatives.py"
