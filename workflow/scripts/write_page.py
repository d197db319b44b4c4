"""Draw the figures of a page, write the page, and say what it says first."""

from importlib import import_module

from neurotier.pages import page_called
from neurotier.run.scripting import script

with script(snakemake) as context:
    if "room" in dict(context.params):
        room = import_module(f"neurotier.pages.{context.params.room}.page")
        said = room.write_page(context.inputs_named(""), context.settings, context.output("page"))
    else:
        said = page_called(context.params.page).write(context.places, context.settings)
    for sentence in said:
        context.say(f"{sentence}.")
    if said:  # the advice says everything itself, last
        context.say(f"Report: {context.output('page')}")
