"""Say on the terminal what is advised: a short table, what it rests on, and the recommendation."""

from neurotier.advice.nodes import node_advices
from neurotier.advice.words import advices, text_table
from neurotier.core.tables import read_table
from neurotier.run.scripting import script

with script(snakemake) as context:
    rows = context.read_table("table", "advice")
    for line in [*text_table(rows), *(f"{line}." for line in context.read_json("basis"))]:
        context.say(line)
    for line in advices(rows):
        context.say(f"Advice: {line}.")
    for table in context.inputs_named("nodes").values():
        for line in node_advices(read_table(table, "nodes")):
            context.say(f"On several nodes, never tried: {line}.")
    context.say(f"Report: {context.input('page')}")
