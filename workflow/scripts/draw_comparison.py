"""Draw the figures of the comparison."""

from neurotier.pages.comparison.figures import FIGURES
from neurotier.pages.kit.figures import draw_all
from neurotier.run.compared import read_comparison_tables
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    compared = read_comparison_tables(context.input("runs").parent)
    draw_all("comparison", FIGURES, compared, context.output("makespan").parent)


if __name__ == "__main__":
    run_script(snakemake, main)
