"""Look at every declared tier from a node, and at the node itself: ``check/CLASS.tsv``."""

from neurotier.core.files import read_json
from neurotier.run.node_check import check_node
from neurotier.run.scripting import script

with script(snakemake) as context:
    (marks,) = [read_json(file) for file in context.inputs("marks")] or [None]
    rows = check_node(context.settings, context.places, context.params.node_class, marks)
    context.write_table("table", "check", rows)
