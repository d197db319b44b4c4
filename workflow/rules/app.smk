# The group level of a BIDS App, which makes the derivatives of a site from the outputs of all participants. The rule's
# only output is the record written at the end: Snakemake removes outputs before a job, and earlier derivatives are to
# stay if the job fails.

from contextlib import suppress

from neurotier.analysis.brains import root_files
from neurotier.core.files import read_json_or_empty
from neurotier.dataset.contents import content_if_readable


def asked_of_group(site_folder):
    site, facts = site_folder.rstrip("/"), read_json_or_empty(places.dataset_facts)
    asked = {
        "participants": plan.of_site(site_folder),
        "version": facts.get("sites", {}).get(site),
        "group": settings.app.group,
        "arguments": settings.app.group_arguments,
    }
    # A plain folder has no version, but the tables at its root may change; one that is empty or cannot be read is taken
    # as not mounted. Times are cut to whole seconds, since a node of a cluster may see no fractions.
    if facts.get("kind") == "folder":
        root, links_to, found = Path(facts["path"], site), settings.dataset.links_to, {}
        with suppress(OSError):
            found = {
                name: content_if_readable(root, name, links_to).version[:-9]
                for name in root_files(root)
            }
        before = read_json_or_empty(places.step("run_group_level", site_folder))
        asked["root"] = found or before.get("asked", {}).get("root", {})
    return asked


# In a results folder that was moved, or from another working folder, Snakemake does not know the params of the last
# group level, so they are compared here.
def analysed_for(wildcards):
    markers, step = analysed(wildcards), places.step(
        "run_group_level", wildcards.site_folder
    )
    asked = asked_of_group(wildcards.site_folder)
    if read_json_or_empty(step).get("asked", asked) != asked:
        internals.force_rule_of(workflow, step)
    return markers


rule run_group_level:
    input:
        tool=places.index / "tool.json",
        analysed=analysed_for,
    output:
        step=places.profile / "steps/{site_folder}run_group_level.json",
    log:
        LOGS / "run_group_level/{site_folder}run_group_level.log",
    wildcard_constraints:
        site_folder=SITE_FOLDER,
    threads: plan.threads
    resources:
        mem_mb=lambda wildcards, attempt: plan.app_memory_mb(
            plan.of_site(wildcards.site_folder), attempt
        ),
        work_mb=lambda wildcards: plan.room.get("work_mb") or 1,  # all of it, since the size of the outputs is not known yet
    params:
        results=RESULTS,
        asked=lambda wildcards: asked_of_group(wildcards.site_folder),
    message:
        "Merging the outputs of participants, in {params.results}/derivatives/{wildcards.site_folder}"
    script:
        "../scripts/run_group_level.py"
