"""Index the dataset's images (for an app: its files), filtered: ``index/images.tsv``, ``index/skipped.tsv``."""

from dataclasses import asdict
from pathlib import Path

from neurotier.core.tables import write_table
from neurotier.dataset.index import index_dataset, kind_of_file
from neurotier.run.healing import note_index
from neurotier.run.jobs import load_dataset
from neurotier.run.participants import by_participant, prepare_all
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    suffixes = context.settings.app.suffixes if context.settings.app.image else None
    index = index_dataset(load_dataset(context.places), context.settings.dataset, suffixes)
    output = context.snakemake.output
    write_table(Path(output.skipped), "skipped", [asdict(entry) for entry in index.skipped])
    prepare_all(context.places, by_participant(index.images))  # first: a participant of the index finds its own
    write_table(Path(output.images), "images", index.rows())
    note_index(context.places)
    people = len({image.participant for image in index.images})
    context.say(f"{len(index.images)} {kind_of_file(suffixes)}s of {people} participants; {len(index.skipped)} skipped")
    for entry in index.skipped:
        context.say(f"skipped {entry.item}: {entry.reason}")


if __name__ == "__main__":
    run_script(snakemake, main)
