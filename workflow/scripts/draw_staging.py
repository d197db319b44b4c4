"""Draw the figures of the staging."""

from neurotier.pages.kit.figures import draw_all
from neurotier.pages.staging.figures import FIGURES, StagingTables
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    tables = StagingTables.read(context.input("points"))
    draw_all("staging", FIGURES, tables, context.output("servers").parent)


if __name__ == "__main__":
    run_script(snakemake, main)
