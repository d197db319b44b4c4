"""Look at the folders that apps read, and place them on the images tier, once: ``index/caches.json``.

Where the nodes of a cluster have images tiers of their own, the first job on each node places them there.
"""

from pathlib import Path

from neurotier.analysis.steps import measured, write_step
from neurotier.core.files import write_json
from neurotier.core.tiers import on_nodes
from neurotier.run.caches import obtain_caches
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    settings, places = context.settings, context.places
    placing = not (context.run_facts().get("elsewhere") and on_nodes(settings, settings.placement["images"]))
    caches, usage = measured(lambda: obtain_caches(settings, places, context.say, placing))
    write_json(Path(context.snakemake.output.caches), caches)
    write_step(places, "place_caches", "", ", ".join(caches), [("obtain", usage)])


if __name__ == "__main__":
    run_script(snakemake, main)
