"""Save each site's derivatives in its DataLad dataset, a commit per batch: ``state/saved.json`` has the commits."""

from neurotier.provenance.saving import save_derivatives
from neurotier.run.jobs import ensure_dataset
from neurotier.run.scripting import script

with script(snakemake) as context:
    dataset = ensure_dataset(context.settings, context.places, context.say)
    context.write_json("saved", save_derivatives(dataset, context.settings, context.places, context.say))
