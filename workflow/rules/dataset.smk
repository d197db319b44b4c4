# The dataset: its clone on the dataset tier, the index of its T1w images, and their contents, fetched when needed.

from neurotier.dataset.source import named_source

# Only for the demonstration: two modules that import this workflow would both have this rule for one file.
if settings.dataset.source == "demo":

    rule make_demo_dataset:
        output:
            facts=places.demo_facts(settings.demo),
        log:
            LOGS / "make_demo_dataset/make_demo_dataset.log",
        params:
            results=RESULTS,
            demo=vars(settings.demo),
        message:
            "Making the demonstration dataset: 5 participants at 2 sites"
        script:
            "../scripts/make_demo_dataset.py"


rule clone_dataset:
    input:
        demo=demo_facts,
    output:
        dataset=places.dataset_facts,
    log:
        LOGS / "clone_dataset/clone_dataset.log",
    params:
        results=RESULTS,
        source=lambda wildcards: named_source(settings.dataset.source),
        version=lambda wildcards: settings.dataset.version,
        sites=lambda wildcards: settings.dataset.sites,
        # As text: Snakemake does not see changes of a Path.
        placement=lambda wildcards: str(places.datasets),
    message:
        "Opening the dataset: {params.source}"
    script:
        "../scripts/clone_dataset.py"


# If a site cannot be reached, this rule and with it the run fails; everything that does not need the site is still done.
rule require_sites:
    input:
        dataset=places.dataset_facts,
    output:
        sites=places.index / "sites.json",
    log:
        LOGS / "require_sites/require_sites.log",
    params:
        results=RESULTS,
    script:
        "../scripts/require_sites.py"


checkpoint index_dataset:
    input:
        dataset=places.dataset_facts,
    output:
        images=places.images_table,
        skipped=places.index / "skipped.tsv",
        checksum=places.index / "images.sha256",
    log:
        LOGS / "index_dataset/index_dataset.log",
    params:
        results=RESULTS,
        filters=plan.filters(),
    message:
        "Indexing the dataset"
    script:
        "../scripts/index_dataset.py"


# The index is an input, since for a plain folder it alone shows that files have changed.
rule validate_dataset:
    input:
        dataset=places.dataset_facts,
        images=places.images_table,
    output:
        issues=places.index / "{site_folder}validation.json",
    log:
        LOGS / "validate_dataset/{site_folder}validate_dataset.log",
    wildcard_constraints:
        site_folder=SITE_FOLDER,
    params:
        results=RESULTS,
        validation=settings.dataset.validation,
    message:
        "Validating the dataset, for {output.issues}"
    script:
        "../scripts/validate_dataset.py"


# All images of a share before its analysis: for the nodes of a cluster, a campaign, and the target `ready`.
rule fetch_images:
    output:
        marker=temp(places.got("{share}")),
    log:
        LOGS / "fetch_images/{share}.log",
    priority: 30
    resources:
        gets=settings.dataset.concurrent_gets,
    params:
        results=RESULTS,
    message:
        "Fetching images, share {wildcards.share}"
    shell:
        "exec python3 -m neurotier fetch-images --share {wildcards.share} --results {params.results:q}"
        " --marker {output.marker:q} --log {log:q}"


# Drops the images that are left: a pool on this machine drops those of each participant when it is done, a pool on a
# node of a cluster does not.
rule drop_images:
    input:
        analysed=places.share("{share}"),
    output:
        marker=places.dropped("{share}"),
    log:
        LOGS / "drop_images/{share}.log",
    priority: 20
    resources:
        gets=1,
    params:
        results=RESULTS,
    message:
        "Dropping images from the dataset tier, share {wildcards.share}"
    shell:
        "exec python3 -m neurotier drop-images --share {wildcards.share} --results {params.results:q}"
        " --marker {output.marker:q} --log {log:q}"
