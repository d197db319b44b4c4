"""Write a file on each tier of this machine, for a node to see; what stands in them: ``check/CLASS-marks.json``."""

from neurotier.core.files import write_json
from neurotier.run.node_check import mark_tiers
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    write_json(context.output("marks"), mark_tiers(context.settings, context.places))


if __name__ == "__main__":
    run_script(snakemake, main)
