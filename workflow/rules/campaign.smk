# The campaign: conditions run one after the other in random order, each as an ordinary run of this workflow. On a
# cluster all of them run in one job, which has a node to itself, so that no two differ in their node.

from neurotier.core.errors import all_without_credentials

# Snakemake keeps params in clear text; jobs take the source with its credentials from the run's settings.
named = dict(configuration)
named["dataset"] = all_without_credentials(named.get("dataset"))


# Whether the plan is that of these settings, and of the present contents of the tools' programs, scripts, descriptions
# and images: Snakemake does not see such contents, nor, from another folder or with --rerun-triggers mtime, the settings.
@cache
@in_a_line
def is_planned():
    from neurotier.run import campaign

    return campaign.is_planned(named, settings, places, on_cluster)


def sites_of_plan(wildcards):
    index()
    if not is_planned():
        internals.force_rule_of(workflow, places.campaign / "plan.tsv")
    return places.index / "sites.json"


rule plan_campaign:
    input:
        sites=sites_of_plan,
        images=places.images_table,
    output:
        plan=places.campaign / "plan.tsv",
    log:
        LOGS / "plan_campaign/plan_campaign.log",
    params:
        results=RESULTS,
        configuration=named,
        source=lambda wildcards: named_source(settings.dataset.source),
    message:
        "Planning the campaign"
    script:
        "../scripts/plan_campaign.py"


# All cores: nothing else may run during a measurement.
rule run_campaign:
    input:
        plan=places.campaign / "plan.tsv",
    output:
        done=places.campaign / "done.tsv",
    log:
        LOGS / "run_campaign/run_campaign.log",
    threads: CORES
    params:
        results=RESULTS,
        configuration=named,
        source=lambda wildcards: named_source(settings.dataset.source),
    message:
        "Running the campaign"
    script:
        "../scripts/run_campaign.py"
