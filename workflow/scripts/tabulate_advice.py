"""Predict how long each placement takes: ``advice/advice.tsv``, and the basis of the predictions."""

from neurotier.advice.basis import basis
from neurotier.advice.situation import Situation
from neurotier.advice.table import advice_rows
from neurotier.core.files import read_json
from neurotier.run.participants import require_all
from neurotier.run.scripting import script

with script(snakemake) as context:
    chosen = context.read_json("calibration")["participants"]
    require_all(context.places, chosen)
    situation = Situation(context.settings, context.places, context.inputs("checks"))
    rehearsed = [read_json(file) for file in context.inputs("rehearsal")]
    inputs = situation.inputs(context.inputs("probes"), rehearsed[0] if rehearsed else {})
    asked, limits = context.params.asked["parallelism"], context.run_facts["limits"]
    rows = advice_rows(situation, inputs, asked, limits)
    context.write_table("table", "advice", rows)
    context.write_json("basis", basis(situation, inputs, chosen))
