"""Draw the figures of the profile and of the brain volumes, each as SVG and PNG with its TSV."""

from neurotier.pages.kit.figures import draw_all
from neurotier.pages.report.data import Tables, read_shown
from neurotier.pages.report.figures import FIGURES
from neurotier.run.scripting import script

with script(snakemake) as context:
    tables = Tables(**{name: read_shown(context.input(name), name) for name in ("profile", "runs", "group", "jobs")})
    draw_all("report", FIGURES, tables, context.output("account").parent)
