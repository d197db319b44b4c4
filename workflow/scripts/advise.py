"""Print the advice: a short table, what it is based on, and the recommendation."""

from neurotier.advice.words import advices, text_table
from neurotier.run.scripting import script

with script(snakemake) as context:
    rows = context.read_table("table", "advice")
    for line in [*text_table(rows), *(f"{line}." for line in context.read_json("basis"))]:
        context.say(line)
    for line in advices(rows):
        context.say(f"Advice: {line}.")
    context.say(f"Report: {context.input('page')}")
