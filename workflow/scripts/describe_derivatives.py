"""Write ``dataset_description.json`` and ``README`` of one site's derivatives."""

from neurotier.analysis.activity import how_of
from neurotier.analysis.derivatives import generated_by, write_description
from neurotier.analysis.tools import MaskTool, make_tool
from neurotier.core.files import write_text
from neurotier.run.jobs import load_dataset, run_facts
from neurotier.run.scripting import script

NAME = "Brain extraction"

README = """Brain masks and brain-extracted T1w images, made by neurotier with {tool} {version}.

Each T1w image of the source dataset gives a binary mask (1 in the brain) and the image with everything outside
the mask set to 0, both on the grid of the source image. JSON sidecars name the source image by BIDS URI.
"""

TRIAL = "Trial of storage"
OF_TRIAL = "Made by neurotier with {tool} {version}, which tries storage: no image was analysed.\n"

with script(snakemake) as context:
    site = context.site
    tool = context.read_json("tool")
    folder = context.output("description").parent
    said = {}
    if context.settings.results_dataset:
        digest = f"sha256:{tool['image']}" if "image" in tool else None
        made_with = run_facts(context.places)["made_with"]
        said = generated_by(how_of(context.settings, tool["version"], digest, made_with))
    source = load_dataset(context.places).sites[site]
    is_trial = not isinstance(make_tool(context.settings.tool), MaskTool)
    name, readme = (TRIAL, OF_TRIAL) if is_trial else (NAME, README)
    write_description(folder, site, source, tool["name"], tool["version"], said, name)
    write_text(folder / "README", readme.format(tool=tool["name"], version=tool["version"]))
