"""Draw every brain mask as an outline on its T1w image, for quality control."""

from neurotier.core.tables import read_table
from neurotier.pages.report.mosaics import draw_mosaics, pictures_of
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    rows = read_table(context.input("group"), "group")
    pictures = pictures_of(rows, context.places, context.settings)
    draw_mosaics(pictures, context.places.mosaics, context.snakemake.threads, context.places.drawn)


if __name__ == "__main__":
    run_script(snakemake, main)
