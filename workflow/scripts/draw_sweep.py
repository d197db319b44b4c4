"""Draw the figures of the sweep."""

from neurotier.pages.kit.figures import draw_all
from neurotier.pages.sweep.figures import FIGURES, SweepTables
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    tables = SweepTables.read(context.input("points"), context.input("headlines"))
    draw_all("sweep", FIGURES, tables, context.output("headlines").parent)


if __name__ == "__main__":
    run_script(snakemake, main)
