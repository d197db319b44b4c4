"""Measure the points of the IOR run that are not there yet: ``ior/ior.tsv``."""

from neurotier.core.tables import write_table
from neurotier.run.scripting import Context, run_script
from neurotier.storage.ior.walk import ior


def main(context: Context) -> None:
    rows = ior(context.settings, context.places, context.say, context.snakemake.params.node_class)
    write_table(context.output("table"), "ior", rows)


if __name__ == "__main__":
    run_script(snakemake, main)
