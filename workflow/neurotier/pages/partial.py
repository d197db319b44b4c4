"""What the end of a run writes and says of its pages, given to :func:`neurotier.run.hooks.finish`.

After a failure Snakemake will not run the rules that depend on everyone; here their work is done for what is there.
Every Snakemake imports this module, so what draws is imported when it is wanted.
"""

from __future__ import annotations

from neurotier.core.places import Places
from neurotier.core.settings import Settings
from neurotier.run.hooks import Pages


def report(settings: Settings, places: Places) -> None:
    """Tables, figures and run report of those who were analysed."""
    from neurotier.pages.report.stages import write_partial

    write_partial(settings, places)


def comparison(settings: Settings, places: Places) -> None:
    """Tables, figures and page of the runs of a campaign that are there."""
    from neurotier.pages.comparison.stages import write_all

    write_all(settings, places)


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


PAGES = Pages(report, comparison, bigbrain, verdict)
