# What all rules share: settings, places, and the functions that read participants from the index.

import sys
from functools import cache
from pathlib import Path

from neurotier.bigbrain.plan import BigBrainPlan
from neurotier.core.places import Places
from neurotier.core.processes import freeze_garbage_collector
from neurotier.core.settings import Settings
from neurotier.core.tiers import with_tiers_for_folders
from neurotier.dataset.bids import SITE_FOLDER
from neurotier.run import head, profile_config
from neurotier.run import snakemake_internals as internals
from neurotier.run.plan import Plan
from neurotier.run.participants import SHARE

freeze_garbage_collector()
internals.hide_traces_of_lost_disks(workflow)
ARGUMENTS = sys.argv[1:] if internals.is_main_process(workflow) else None
SNAKEFILE = internals.main_snakefile(workflow)

with internals.errors_as_one_line():
    user_command = profile_config.read_command(
        ARGUMENTS,
        SNAKEFILE,
        internals.directory_option(workflow),
        internals.cores(workflow) or 1,
    )
    if internals.has_config_of_its_own(workflow, config):
        configuration = config
    else:
        given = internals.command_line_config(workflow)
        configuration = profile_config.effective_config(
            config, given, user_command.config
        )
    configuration = with_tiers_for_folders(configuration)
    settings = Settings.from_config(configuration, internals.uses_containers(workflow))
    places = Places.from_settings(settings).shortened()
    on_cluster = bool(user_command.executor)
    plan = Plan(
        settings, places, on_cluster, ARGUMENTS is None, user_command.node_class
    )
    # Nothing is done while rules are read. The first rule that is asked for its inputs does what a start has to do.
    names = {}
    start = cache(head.Head(plan, workflow, pages, names).start)
    plan, start, checkpoints, names = internals.first_reading(
        workflow, places.results, plan, start, checkpoints, names
    )
    bigbrain = BigBrainPlan(settings, places, plan.node_class)
    if ARGUMENTS is not None:
        internals.require_folder(ARGUMENTS)
        internals.check_without_cores(workflow, ARGUMENTS)

in_a_line = internals.errors_as_one_line()
RESULTS, LOGS = places.results, places.logs
CORES = user_command.cores or internals.cores(workflow) or 1
head.make_importable()


wildcard_constraints:
    share=SHARE,


# The table of images. Cached, since get() takes 0.1 ms, and a checkpoint that is done stays so; until then it raises.
@cache
def index():
    return checkpoints.index_dataset.get().output.images


# An input function that asks the plan once the dataset is indexed.
def after_index(answer):
    def files(wildcards):
        index()
        return answer(wildcards)

    return files


# The demonstration dataset. It and its clone are made again if their tier has lost them (a tmpfs after a reboot) and
# participants are still missing.
def demo_facts(wildcards):
    if settings.dataset.source != "demo":
        return []
    facts = places.demo_facts(settings.demo)
    if not facts.exists() and not places.complete.exists():
        internals.force_rule_of(workflow, places.dataset_facts)
    return facts


# The files that show that the derivatives of each site are described; for an app, also that they are made.
def descriptions():
    sites = plan.sites()
    if plan.is_app:
        return [places.step("run_group_level", site) for site in sites]
    return [places.derivatives / site / "dataset_description.json" for site in sites]


def valid_sites(wildcards):
    if settings.dataset.validation != "require":
        return []
    index()
    return plan.validations()


markers = after_index(lambda wildcards: plan.markers(wildcards.share))
all_ready = after_index(lambda wildcards: plan.ready())
analysed = after_index(lambda wildcards: plan.analysis_markers())
dropped_markers = after_index(lambda wildcards: plan.drop_markers())
derivative_descriptions = after_index(lambda wildcards: descriptions())
steps_of_sites = after_index(
    lambda wildcards: plan.validations() + (descriptions() if plan.is_app else [])
)


def calibration():
    return checkpoints.choose_calibration.get().output.calibration
