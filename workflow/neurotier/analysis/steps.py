"""Steps done once per run or site, instead of by every participant job; measured and recorded separately.

In the published runs every task validated and hashed its whole site. Here such steps are done once, and appear once.
"""

from __future__ import annotations

from collections.abc import Iterable

from neurotier.core.files import Facts, Record, read_json, without, write_json
from neurotier.core.places import Places
from neurotier.core.processes import current_run
from neurotier.meter.usage import Usage


def write_step(
    places: Places,
    step: str,
    site: str,
    item: str,
    phases: Iterable[tuple[str, Usage]],
    **more: Facts,
) -> None:
    """Write a step's record.

    Parameters
    ----------
    places
        Places of the results.
    step
        Name of the rule.
    site
        The site it was done for; empty for the whole run.
    item
        What was worked on, for people.
    phases
        Name and cost of each of its phases.
    more
        Of a group level: ``derivatives``, the files that it published, as returned by
        :func:`neurotier.analysis.staging.manifest_of`, and what was ``asked`` for.
    """
    write_json(
        places.step(step, site),
        {
            "run": current_run(),
            "step": step,
            "item": item,
            "phases": [{"phase": name, **usage.record()} for name, usage in phases],
            **more,
        },
    )


def step_rows(places: Places) -> list[Record]:
    """Rows of ``steps.tsv``: one per phase of every step, in order of time."""
    rows = [
        without(record, "phases", "derivatives", "asked") | phase
        for record in map(read_json, sorted((places.profile / "steps").rglob("*.json")))
        for phase in record["phases"]
    ]
    return sorted(rows, key=lambda row: row["start_s"])
