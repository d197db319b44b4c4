"""Build, pull or take the container image, once, and place it on the images tier: ``index/image.json``."""

from dataclasses import asdict
from pathlib import Path

from neurotier.analysis.steps import measured, write_step
from neurotier.run.healing import write_and_keep
from neurotier.run.jobs import image_store
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    settings, places = context.settings, context.places
    key = "app.image" if settings.app.image else f"tool.{settings.tool.name}.image"
    store = image_store(settings, places, Path(context.snakemake.log[0]), context.say)
    image, usage = measured(lambda: store.obtain(settings.image or "", key))
    facts = {name: value for name, value in asdict(image).items() if name != "form"}  # no matter of what it is
    write_and_keep(places, Path(context.snakemake.output.image), facts)
    write_step(places, "obtain_image", "", image.name, [("obtain", usage)])


if __name__ == "__main__":
    run_script(snakemake, main)
