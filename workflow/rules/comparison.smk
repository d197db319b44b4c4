# The comparison: the runs of a campaign, of other results folders and of the published experiment, side by side.


rule tabulate_comparison:
    input:
        tables=lambda wildcards: plan.compared(),
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
        published=settings.published,
    message:
        "Tabulating what is compared"
    script:
        "../scripts/tabulate_comparison.py"


rule draw_comparison:
    input:
        rules.tabulate_comparison.output,
    output:
        makespan=report(
            places.comparison_figures / "makespan.svg",
            caption="../report/makespan.rst",
            category="Comparison",
        ),
        cpu_io_sums=report(
            places.comparison_figures / "cpu_io_sums.svg",
            caption="../report/cpu_io_sums.rst",
            category="Comparison",
        ),
        accounts=report(
            places.comparison_figures / "accounts.svg",
            caption="../report/accounts.rst",
            category="Comparison",
        ),
        differences=report(
            places.comparison_figures / "differences.svg",
            caption="../report/differences.rst",
            category="Comparison",
        ),
        phases=report(
            places.comparison_figures / "phases.svg",
            caption="../report/phases.rst",
            category="Comparison",
        ),
        gantts=report(
            places.comparison_figures / "gantts.svg",
            caption="../report/gantts.rst",
            category="Comparison",
        ),
        image_start=report(
            places.comparison_figures / "image_start.svg",
            caption="../report/image_start.rst",
            category="Comparison",
        ),
        tier_bytes=report(
            places.comparison_figures / "tier_bytes.svg",
            caption="../report/tier_bytes.rst",
            category="Comparison",
        ),
        others=[
            places.comparison_figures / f"{name}.{extension}"
            for name in (
                *("makespan", "cpu_io_sums", "accounts", "differences"),
                *("phases", "gantts", "image_start", "tier_bytes"),
            )
            for extension in ("png", "tsv")
        ],
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
        rules.tabulate_comparison.output,
        rules.draw_comparison.output,
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
