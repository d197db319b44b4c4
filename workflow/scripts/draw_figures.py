"""Draw the figures of the profile and of the brain volumes, each as SVG and PNG with its TSV."""

from neurotier.pages.report import stages
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    stages.draw_figures(context.places)


if __name__ == "__main__":
    run_script(snakemake, main)
