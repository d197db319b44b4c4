"""What the end of a run writes and says of its pages, given to :func:`neurotier.run.head.finish`.

After a failure Snakemake will not run the rules that depend on everyone; here their work is done for what is there.
Every Snakemake imports this module, so what draws is imported when it is wanted.
"""

from __future__ import annotations

from neurotier.core.places import Places
from neurotier.core.settings import Settings


def report(settings: Settings, places: Places) -> None:
    """Tables, figures and run report of those who were analysed."""
    from neurotier.core.files import write_json
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
    """Tables, figures and page of the runs of a campaign that are there."""
    from neurotier.pages import page_called
    from neurotier.pages.comparison.statistics import everything_compared
    from neurotier.run.compared import write_comparison_tables

    compared = everything_compared(places.campaign / "plan.tsv", settings.comparison.results, settings.published)
    write_comparison_tables(compared, places.comparison)
    page_called("comparison").write(places, settings)


def bigbrain(settings: Settings, places: Places) -> list[str]:
    """Tables, figures and page of the BigBrain runs that are there; what is to be said of them."""
    from neurotier.pages.bigbrain.partial import write_partial

    return write_partial(settings, places)


def verdict(places: Places) -> list[str]:
    """How many runs a comparison has and leaves out, and which placement was fastest."""
    from neurotier.pages.comparison.verdict import judge
    from neurotier.run.compared import read_comparison_tables

    compared = read_comparison_tables(places.comparison)
    found = judge(compared.runs, compared.participants)
    return [found.counts, *(f"{family.name}: {family.headline}" for family in found.families)]
