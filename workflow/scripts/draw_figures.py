"""Draw the figures of the profile and of the brain volumes, each as SVG and PNG with its TSV."""

from neurotier.pages.kit.figures import draw_all
from neurotier.pages.report.data import Tables, read_shown
from neurotier.pages.report.figures import FIGURES
from neurotier.run.scripting import Context, run_script


def main(context: Context) -> None:
    tables = Tables(**{name: read_shown(context.input(name), name) for name in ("profile", "runs", "group", "jobs")})
    draw_all("report", FIGURES, tables, context.output("account").parent)


if __name__ == "__main__":
    run_script(snakemake, main)
