"""Draw the figures of the probe."""

from neurotier.core.tables import read_table
from neurotier.pages.kit.figures import draw_all
from neurotier.pages.probe.figures import FIGURES
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    draw_all("probe", FIGURES, read_table(context.input("table"), "probe"), context.output("concurrency").parent)


if __name__ == "__main__":
    run_script(snakemake, main)
