"""Check one site with the BIDS validator, once: ``index/[SITE/]validation.json``."""

from neurotier.analysis.steps import write_step
from neurotier.dataset.validation import issues_line, validate
from neurotier.meter.function import measure_function
from neurotier.run.jobs import ensure_clone
from neurotier.run.scripting import script

with script(snakemake) as context:
    site = context.site
    folder = ensure_clone(context.settings, context.places, site, context.say).path / site
    found, usage = measure_function(lambda: validate(folder, site or "dataset"))
    write_step(context.places, "validate_dataset", site, site or "dataset", [("validate", usage)])
    context.say(issues_line(found, site or "dataset"))
    context.write_json("issues", found)
