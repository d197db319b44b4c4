"""Write ``dataset_description.json`` and ``README`` of one site's derivatives."""

from neurotier.analysis.activity import how_of
from neurotier.analysis.derivatives import write_description
from neurotier.run.jobs import load_dataset
from neurotier.run.scripting import script

with script(snakemake) as context:
    site = context.site
    tool = context.read_json("tool")
    folder = context.output("description").parent
    how = None
    if context.settings.results_dataset:
        digest = f"sha256:{tool['image']}" if "image" in tool else None
        how = how_of(context.settings, tool["version"], digest)
    write_description(folder, site, load_dataset(context.places).sites[site], tool["name"], tool["version"], how)
