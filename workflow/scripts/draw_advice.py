"""Draw the figures of the advice."""

from neurotier.core.tables import read_table
from neurotier.pages.advice.figures import FIGURES
from neurotier.pages.kit.figures import draw_all
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    draw_all("advice", FIGURES, read_table(context.input("table"), "advice"), context.output("advised").parent)


if __name__ == "__main__":
    run_script(snakemake, main)
