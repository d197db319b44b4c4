# The comparison: the runs of a campaign, of other results folders and of the published experiment, side by side.

from neurotier.pages.comparison import figures as comparison_figures
from neurotier.pages.kit.registry import outputs


rule tabulate_comparison:
    input:
        campaign=lambda wildcards: plan.campaign(),
        results=lambda wildcards: plan.compared(),
    output:
        runs=places.comparison / "compared_runs.tsv",
        participants=places.comparison / "compared_participants.tsv",
        traffic=places.comparison / "compared_bytes.tsv",
        makespans=report(
            places.comparison / "makespans.tsv",
            caption="../report/makespans.rst",
            category="Comparison",
        ),
        differences=places.comparison / "differences.tsv",
        speed_ups=places.comparison / "speed_ups.tsv",
    log:
        LOGS / "tabulate_comparison/tabulate_comparison.log",
    params:
        results=RESULTS,
        compared=settings.comparison.results,
        published=settings.published,
    message:
        "Tabulating what is compared"
    script:
        "../scripts/tabulate_comparison.py"


rule draw_comparison:
    input:
        runs=places.comparison / "compared_runs.tsv",
        participants=places.comparison / "compared_participants.tsv",
        traffic=places.comparison / "compared_bytes.tsv",
    output:
        **outputs(
            comparison_figures.FIGURES,
            places.comparison_figures,
            report,
            "Comparison",
        ),
    log:
        LOGS / "draw_comparison/draw_comparison.log",
    params:
        results=RESULTS,
    message:
        "Drawing the comparison"
    script:
        "../scripts/draw_comparison.py"


rule write_comparison:
    input:
        runs=places.comparison / "compared_runs.tsv",
        participants=places.comparison / "compared_participants.tsv",
        traffic=places.comparison / "compared_bytes.tsv",
        figures=rules.draw_comparison.output,
        campaign=lambda wildcards: plan.campaign(),
    output:
        page=report(
            RESULTS / "comparison.html",
            caption="../report/comparison.rst",
            category="Comparison",
        ),
    log:
        LOGS / "write_comparison/write_comparison.log",
    params:
        results=RESULTS,
    message:
        "Writing the comparison report"
    script:
        "../scripts/write_comparison.py"
