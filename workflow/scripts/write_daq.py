"""Write the page on the DAQ run, ``daq.html``, findings first, and say what it says."""

from neurotier.pages.daq.figures import DaqTables
from neurotier.pages.daq.page import write_page
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    files = [context.input("points"), context.input("backlog")]
    tables = DaqTables.read(*files, context.settings.daq)
    for sentence in write_page(tables, files, context.inputs("figures")[0].parent, context.output("page")):
        context.say(sentence)
    context.say(f"Report: {context.output('page')}")


if __name__ == "__main__":
    run_script(snakemake, main)
