# Figures, pictures of every brain mask, and the run report.

from neurotier.pages.kit.registry import outputs
from neurotier.pages.report import figures as report_figures


rule draw_figures:
    input:
        profile=places.profile / "profile.tsv",
        runs=places.profile / "runs.tsv",
        group=places.group / "group.tsv",
        jobs=places.profile / "jobs.tsv",
    output:
        **outputs(report_figures.FIGURES, places.figures, report, "Run report"),
    log:
        LOGS / "draw_figures/draw_figures.log",
    params:
        results=RESULTS,
    message:
        "Drawing the figures"
    script:
        "../scripts/draw_figures.py"


# The table of the group names the derivatives, and is newer than all of them: to name them here, too, would cost the
# start of every command.
rule draw_mosaics:
    input:
        dataset=places.index / "dataset.json",
        group=places.group / "group.tsv",
    output:
        mosaics=report(
            directory(places.mosaics),
            patterns=["{name}.png"],
            caption="../report/draw_mosaics.rst",
            category="Brain masks",
        ),
    log:
        LOGS / "draw_mosaics/draw_mosaics.log",
    threads: 4
    params:
        results=RESULTS,
    message:
        "Drawing every brain mask on its T1w image"
    script:
        "../scripts/draw_mosaics.py"


# It tells of what is there, too, that no rule makes: facts of the runs, failures, and an advice that was asked for.
rule write_report:
    input:
        dataset=places.index / "dataset.json",
        images=places.index / "images.tsv",
        skipped=places.index / "skipped.tsv",
        profile=places.profile / "profile.tsv",
        traffic=places.profile / "traffic.tsv",
        runs=places.profile / "runs.tsv",
        group=places.group / "group.tsv",
        summary=places.group / "summary.json",
        steps=places.profile / "steps.tsv",
        jobs=places.profile / "jobs.tsv",
        figures=rules.draw_figures.output,
        mosaics=places.mosaics,
    output:
        page=report(
            RESULTS / "report.html",
            caption="../report/write_report.rst",
            category="Run report",
        ),
    log:
        LOGS / "write_report/write_report.log",
    params:
        results=RESULTS,
    message:
        "Writing the run report"
    script:
        "../scripts/write_report.py"
