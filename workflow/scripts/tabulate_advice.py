"""Predict what each placement takes: ``advice/advice.tsv``, and what it rests on."""

from neurotier.advice.basis import basis
from neurotier.advice.situation import Situation
from neurotier.advice.table import advice_rows
from neurotier.core.files import read_json, write_json
from neurotier.core.tables import write_table
from neurotier.run.participants import require_all
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    chosen = read_json(context.input("calibration"))["participants"]
    require_all(context.places, chosen)
    situation = Situation(context.settings, context.places, context.inputs("checks"))
    rehearsed = [read_json(file) for file in context.inputs("rehearsal")]
    inputs = situation.inputs(context.inputs("probes"), rehearsed[0] if rehearsed else None)
    asked, limits = context.snakemake.params.asked["parallelism"], context.run_facts()["limits"]
    rows = advice_rows(situation, inputs, asked, limits)
    write_table(context.output("table"), "advice", rows)
    write_json(context.output("basis"), basis(situation, inputs, chosen, asked))


if __name__ == "__main__":
    run_script(snakemake, main)
