"""Draw the figures of a page, write the page, and print its first sentences."""

from neurotier.pages import page_called
from neurotier.run.scripting import script

with script(snakemake) as context:
    page = page_called(context.params.page)
    said = page.write(context.places, context.settings)
    if page.prints_verdicts:
        for sentence in said:
            context.say(f"{sentence}.")
        context.say(f"Report: {context.output('page')}")
