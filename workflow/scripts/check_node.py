"""Look at every declared tier from a node, and at the node: ``check/CLASS.tsv``."""

from neurotier.core.files import read_json
from neurotier.core.tables import write_table
from neurotier.run.node_check import check_node
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    (marks,) = [read_json(file) for file in context.inputs("marks")] or [None]
    rows = check_node(context.settings, context.places, context.snakemake.params.node_class, marks)
    write_table(context.output("table"), "check", rows)


if __name__ == "__main__":
    run_script(snakemake, main)
