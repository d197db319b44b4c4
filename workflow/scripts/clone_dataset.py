"""Clone the dataset to its tier with the sites asked for; ``index/dataset.json`` says where it lies."""

from pathlib import Path

from neurotier.files import write_json
from neurotier.jobs import dataset_json
from neurotier.places import dataset_name
from neurotier.scripting import Context, run_script
from neurotier.source import check_tier, obtain
from neurotier.tiers import tiers_of


def main(context: Context) -> None:
    settings, places = context.settings, context.places
    demo = settings.dataset.source == "demo"
    source = str(places.demo(settings.demo)) if demo else settings.dataset.source
    dataset = obtain(settings.dataset, source, places.datasets / dataset_name(source), context.say)
    check_tier(dataset, tiers_of(settings)["dataset"])
    write_json(Path(context.snakemake.output.dataset), dataset_json(dataset))


if __name__ == "__main__":
    run_script(snakemake, main)
