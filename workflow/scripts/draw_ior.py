"""Draw the figures of the IOR run."""

from neurotier.core.tables import read_table
from neurotier.pages.ior.figures import FIGURES
from neurotier.pages.kit.figures import draw_all
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    draw_all("ior", FIGURES, read_table(context.input("table"), "ior"), context.output("bandwidth").parent)


if __name__ == "__main__":
    run_script(snakemake, main)
