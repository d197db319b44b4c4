"""Clone the dataset to its tier, with the requested sites; ``index/dataset.json`` says where it is."""

from neurotier.core.tiers import tiers_of
from neurotier.dataset.source import check_tier, obtain
from neurotier.provenance.saving import check_source
from neurotier.run.jobs import dataset_json, source_of
from neurotier.run.scripting import script

with script(snakemake) as context:
    settings, places = context.settings, context.places
    dataset = obtain(settings.dataset, source_of(settings, places), places.datasets, context.say)
    check_tier(dataset, tiers_of(settings)["dataset"])
    if settings.results_dataset:
        check_source(dataset)
    context.write_json("dataset", dataset_json(dataset))
