"""Index the dataset's T1w images by pybids and apply the filters: ``index/images.tsv`` and ``skipped.tsv``."""

from dataclasses import asdict
from pathlib import Path

from neurotier.index import index_dataset
from neurotier.jobs import load_dataset
from neurotier.scripting import Context, run_script
from neurotier.tables import write_table


def main(context: Context) -> None:
    index = index_dataset(load_dataset(context.places), context.settings.dataset)
    output = context.snakemake.output
    write_table(Path(output.skipped), "skipped", [asdict(entry) for entry in index.skipped])
    write_table(Path(output.images), "images", index.rows())
    people = len({image.participant for image in index.images})
    context.say(f"{len(index.images)} T1w images of {people} participants; {len(index.skipped)} skipped")
    for entry in index.skipped:
        context.say(f"skipped {entry.item}: {entry.reason}")


if __name__ == "__main__":
    run_script(snakemake, main)
