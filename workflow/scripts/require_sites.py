"""Stop unless every site that was asked for is there; the marker ``index/sites.json`` names them."""

from pathlib import Path

from neurotier.core.files import write_json
from neurotier.dataset.source import require_sites
from neurotier.run.jobs import load_dataset
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    dataset = load_dataset(context.places)
    require_sites(dataset)
    write_json(Path(context.snakemake.output.sites), {"sites": list(dataset.sites)})


if __name__ == "__main__":
    run_script(snakemake, main)
