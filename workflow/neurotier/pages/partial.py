"""Write pages at the end of a run, and say what they show; passed to :meth:`neurotier.run.head.Head.finish`.

After a failure, Snakemake does not run the rules that depend on all participants; the functions here do their work with
the results that exist. Every Snakemake process imports this module, so code that draws is imported only when needed.
"""

from __future__ import annotations

from neurotier.core.files import read_json, write_json
from neurotier.core.places import Places
from neurotier.core.processes import current_run
from neurotier.core.settings import Settings

BIGBRAIN_RULES = "make_blocks begin_increment increment_block run_gnu_parallel run_spark check_increment"
"""Rules of the incrementation, each of whose jobs writes a log."""


def report(settings: Settings, places: Places) -> None:
    """Write the tables, figures and run report of the participants who were analysed."""
    from neurotier.core.tables import write_table
    from neurotier.pages.report import PAGE
    from neurotier.pages.report.mosaics import draw_mosaics, pictures_of
    from neurotier.run.group import group_rows, summary
    from neurotier.run.participants import records_of
    from neurotier.run.profile_tables import TABLES, read_records, tabulate_profile

    records = records_of(places)
    tables = {name: places.profile / f"{name}.tsv" for name in TABLES}
    tabulate_profile(places, records, tables)
    group = group_rows(read_records(records))
    write_table(places.group / "group.tsv", "group", group)
    write_json(places.group / "summary.json", summary(group))
    draw_mosaics(pictures_of(group, places, settings), places.mosaics, workers=1, drawn=places.drawn)
    PAGE.write(places, settings)


def comparison(settings: Settings, places: Places) -> None:
    """Write the tables, figures and page of the existing runs of a campaign."""
    from neurotier.pages import page_called
    from neurotier.pages.comparison.verdict import all_compared
    from neurotier.run.compared import write_comparison_tables

    compared = all_compared(places.campaign / "plan.tsv", settings.comparison.results, settings.published)
    write_comparison_tables(compared, places.comparison)
    page_called("comparison").write(places, settings)


def bigbrain(settings: Settings, places: Places) -> list[str]:
    """Write the tables, figures and page of the BigBrain runs that have begun; return lines for the user.

    If this run of the workflow did no job of the incrementation, nothing is written, and no line returned. Predictions
    that were made for earlier runs are removed.
    """
    from neurotier.bigbrain.plan import BigBrainPlan
    from neurotier.bigbrain.room import make_room
    from neurotier.bigbrain.tabulation import lines_of, tabulate, write_tables
    from neurotier.pages import page_called

    plan, folder = BigBrainPlan(settings, places), places.bigbrain
    begun = {run: file for run in plan.order if (file := places.bigbrain_run(run) / "plan.json").exists()}
    if not begun or not took_part(places):
        return []
    predictions = folder / "bigbrain_predictions.tsv"
    if predictions.exists() and predictions.stat().st_mtime < max(file.stat().st_mtime for file in begun.values()):
        predictions.unlink()
    tabulated = tabulate(begun[run].parent for run in plan.runs if run in begun)
    write_tables(tabulated, folder)
    make_room(plan)
    said = [f"BigBrain: {line}" for line in page_called("bigbrain").write(places, settings)]
    report = places.shortened().results / "bigbrain.html"
    return [*lines_of(tabulated["runs"]), *said, f"Report: {report}"]


def took_part(places: Places) -> bool:
    """Whether this run of the workflow has done any job of the incrementation, judging by the jobs' logs."""
    started_s = read_json(places.runs / f"{current_run()}.json")["started_s"]
    logs = [log for rule in BIGBRAIN_RULES.split() for log in (places.logs / rule).rglob("*.log")]
    return any(log.stat().st_mtime >= started_s for log in logs)


def verdict(settings: Settings, places: Places) -> list[str]:
    """Lines on how many runs a comparison has and leaves out, and on which placement was fastest."""
    from neurotier.pages import page_called
    from neurotier.pages.comparison.verdict import counts_text, judge, without_runs

    found = page_called("comparison").read(places, settings)
    said = {family.name: family.headline for family in judge(found)}
    return [
        counts_text(found),
        *(f"{name}: {text}" for part in (said, without_runs(found)) for name, text in part.items()),
    ]
