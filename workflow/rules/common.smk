# What all rules share: settings, places, and the functions that read participants from the index.

import sys
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError

from neurotier.core.errors import NeurotierError
from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.dataset.bids import PARTICIPANT, SITE_FOLDER
from neurotier.run import hooks, jobs
from neurotier.run import snakemake_internals as internals
from neurotier.run.plan import Plan
from neurotier.run.profile_config import effective_config

try:
    configuration = effective_config(
        config,
        internals.command_line_config(workflow),
        sys.argv[1:] if internals.is_main_process(workflow) else None,
        internals.main_snakefile(workflow),
    )
    settings = Settings.from_config(configuration, internals.uses_containers(workflow))
    places = Places.from_settings(settings).shortened(Path.cwd())
    plan = Plan(settings, places)
    if internals.is_main_process(workflow):
        hooks.look_ahead(plan, sys.argv[1:])
except NeurotierError as error:
    raise WorkflowError(str(error)) from None

RESULTS, LOGS = places.results, places.logs
hooks.make_importable(workflow.basedir)
internals.run_group_at_once(lambda name: jobs.is_done(places, name))


wildcard_constraints:
    participant=PARTICIPANT,


internals.set_limits(workflow, plan.limits())


# The table of images. A checkpoint that is done stays so, and to look takes 0.1 ms; before, get() raises every time.
@cache
def index():
    return checkpoints.index_dataset.get().output.images


def markers(wildcards):
    index()
    return plan.markers(wildcards.participant)


def all_ready(wildcards):
    return plan.ready(index())


def all_records(wildcards):
    return [places.record(name) for name in plan.participants(index())]


def all_derivatives(wildcards):
    return [places.analysed(name, plan.is_app) for name in plan.participants(index())]


def derivative_descriptions(wildcards):
    return [
        places.derivatives / site / "dataset_description.json"
        for site in plan.sites(index())
    ]


def valid_site(wildcards):
    index()
    return plan.required_validation(wildcards.participant)


def steps_of_sites(wildcards):
    return plan.validations(index()) + (
        derivative_descriptions(wildcards) if plan.is_app else []
    )


def outputs_of_site(wildcards):
    index()
    return plan.outputs_of(wildcards.site_folder)


def dropped_markers(wildcards):
    return plan.dropped(index())


def begin_run(workflow):
    try:
        hooks.begin(plan, workflow)
    except NeurotierError as error:
        raise WorkflowError(str(error)) from None
