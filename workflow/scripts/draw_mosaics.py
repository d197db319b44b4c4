"""Draw every brain mask as an outline on its T1w image, for quality control."""

from neurotier.pages.report import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    stages.draw_mosaics(context.places, context.snakemake.threads)


if __name__ == "__main__":
    run_script(snakemake, main)
