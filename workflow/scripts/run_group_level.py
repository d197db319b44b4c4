"""Run the app's group level over one site, and publish its derivatives."""

from neurotier.analysis.app import run_group_level
from neurotier.run.images import placed_image
from neurotier.run.jobs import ensure_clone
from neurotier.run.needs import Granted, Needs
from neurotier.run.participants import require_all
from neurotier.run.scripting import script

with script(snakemake) as context:
    log = context.log.absolute()
    placed = placed_image(context.settings, context.places, log)
    assert placed is not None  # noqa: S101  # for the type checker: apps run in containers
    site = context.site
    asked = context.params.asked
    people = asked["participants"]
    require_all(context.places, people)
    dataset = ensure_clone(context.settings, context.places, site, context.say)
    on_cluster = context.run_facts.get("elsewhere", False)
    granted = Granted(context.snakemake.threads, context.snakemake.resources.mem_mb)
    share = Needs(context.settings, context.places, on_cluster).share_of_group(granted, people)
    inputs = dataset, site, asked, context.settings, context.places, log, placed, share
    for name in run_group_level(*inputs, context.step.tell):
        context.say(f"{site or 'group level'}: participants wrote {name} with different contents; the first was taken")
