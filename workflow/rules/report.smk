# Figures, pictures of every brain mask, and the run report.


rule draw_figures:
    input:
        profile=places.profile / "profile.tsv",
        runs=places.profile / "runs.tsv",
        group=places.group / "group.tsv",
    output:
        account=report(
            places.figures / "account.svg",
            caption="../report/account.rst",
            category="CPU and I/O",
        ),
        cpu_io=report(
            places.figures / "cpu_io.svg",
            caption="../report/cpu_io.rst",
            category="CPU and I/O",
        ),
        gantt=report(
            places.figures / "gantt.svg",
            caption="../report/gantt.rst",
            category="CPU and I/O",
        ),
        brain_volume=report(
            places.figures / "brain_volume.svg",
            caption="../report/brain_volume.rst",
            category="Brain volumes",
        ),
        others=[
            places.figures / f"{name}.{extension}"
            for name in ("account", "cpu_io", "gantt", "brain_volume")
            for extension in ("png", "tsv")
        ],
    log:
        LOGS / "draw_figures/draw_figures.log",
    params:
        results=RESULTS,
    message:
        "Drawing the figures"
    script:
        "../scripts/draw_figures.py"


rule draw_mosaics:
    input:
        derivatives=all_derivatives,
        group=places.group / "group.tsv",
    output:
        mosaics=report(
            directory(places.mosaics),
            patterns=["{name}.png"],
            caption="../report/mosaics.rst",
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


rule write_report:
    input:
        profile=places.profile / "profile.tsv",
        traffic=places.profile / "traffic.tsv",
        runs=places.profile / "runs.tsv",
        group=places.group / "group.tsv",
        summary=places.group / "summary.json",
        skipped=places.index / "skipped.tsv",
        steps=places.profile / "steps.tsv",
        figures=rules.draw_figures.output,
        mosaics=places.mosaics,
    output:
        page=report(
            RESULTS / "report.html",
            caption="../report/run_report.rst",
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
