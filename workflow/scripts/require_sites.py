"""Fail unless every requested site is installed; the marker ``index/sites.json`` names them."""

from neurotier.dataset.source import require_sites
from neurotier.run.jobs import load_dataset
from neurotier.run.scripting import script

with script(snakemake) as context:
    dataset = load_dataset(context.places)
    require_sites(dataset, context.settings.dataset.participants)
    context.write_json("sites", {"sites": list(dataset.sites)})
