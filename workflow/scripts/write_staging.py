"""Write the page on the staging, ``staging.html``, findings first."""

from neurotier.pages.staging.figures import StagingTables
from neurotier.pages.staging.page import write_page
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    files = [context.input("points"), context.input("published")]
    write_page(StagingTables.read(files[0]), files, context.inputs("figures")[0].parent, context.output("page"))
    context.say(f"Report: {context.output('page')}")


if __name__ == "__main__":
    run_script(snakemake, main)
