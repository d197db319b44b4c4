"""Write ``dataset_description.json`` and ``README`` of one site's derivatives."""

from pathlib import Path

from neurotier.analysis.activity import how_of
from neurotier.analysis.derivatives import write_description
from neurotier.core.files import read_json
from neurotier.run.jobs import load_dataset
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    site = context.snakemake.wildcards.site_folder.rstrip("/")
    tool = read_json(Path(context.snakemake.input.tool))
    folder = Path(context.snakemake.output.description).parent
    how = None
    if context.settings.results_dataset:
        digest = f"sha256:{tool['image']}" if "image" in tool else None
        how = how_of(context.settings, tool["version"], digest)
    write_description(folder, site, load_dataset(context.places).sites[site], tool["name"], tool["version"], how)


if __name__ == "__main__":
    run_script(snakemake, main)
