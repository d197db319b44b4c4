"""Predict what each placement takes: ``advice/advice.tsv``, on several nodes ``nodes.tsv``, and what it rests on."""

from neurotier.advice.basis import basis
from neurotier.advice.nodes import node_basis, node_rows
from neurotier.advice.situation import Situation
from neurotier.advice.small_files import files_said
from neurotier.advice.table import advice_rows
from neurotier.core.files import read_json, write_json
from neurotier.run.participants import require_all
from neurotier.run.scripting import script

with script(snakemake) as context:
    chosen = context.read_json("calibration")["participants"]
    require_all(context.places, chosen)
    situation = Situation(context.settings, context.places, context.inputs("checks"))
    rehearsed = [read_json(file) for file in context.inputs("rehearsal")]
    inputs = situation.inputs(context.inputs("probes"), rehearsed[0] if rehearsed else None)
    asked, limits = context.params.asked["parallelism"], context.run_facts["limits"]
    rows, on_nodes = advice_rows(situation, inputs, asked, limits), []
    if context.snakemake.output.get("nodes"):
        on_nodes = node_rows(situation, inputs, rows, limits)
        context.write_table("nodes", "nodes", on_nodes)
    context.write_table("table", "advice", rows)
    write_json(
        context.output("basis"), [*basis(situation, inputs, chosen, asked), *files_said(rows), *node_basis(on_nodes)]
    )
