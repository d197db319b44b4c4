"""Write the self-contained run report, verdict first."""

from neurotier.pages.report.data import collect
from neurotier.pages.report.page import write_page
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    write_page(collect(context.places, context.settings), context.output("page"))


if __name__ == "__main__":
    run_script(snakemake, main)
