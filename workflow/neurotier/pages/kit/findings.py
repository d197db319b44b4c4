"""Texts and sections that several pages use, and the common sections of the pages of storage workloads.

The latter say where points were measured, which were not measured, and what papers state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from neurotier.core.configuration import read_yaml
from neurotier.core.installed import ROOT
from neurotier.core.quantities import counted, percent, seconds
from neurotier.core.tables import Rows, grouped
from neurotier.pages.kit.contrasts import CHANCE, LEAST
from neurotier.pages.kit.page import Page, Part, Section
from neurotier.storage.published import PublishedNumber
from neurotier.storage.spread import MEASURED, Spread, measured_rows

MEANINGS = {
    "valid": "of a run: its times are fit for comparison. It was not stopped, it did all participants, the machine did"
    " not swap, and other programs took, where that is known, no more of its CPU time than validity.others_cpu_share.",
    "makespan": "of a run: from the earliest start to the latest end of the participant jobs that succeeded.",
    "on its device": "of a run: its makespan, plus the time after it until all that it wrote was on its device.",
    "oversubscribed": "of a run: it had more jobs at a time than there are CPUs, so that they waited for a core. Its"
    " times are not those of the storage alone.",
    "sure": f"of a difference: chance alone makes one as large in {percent(CHANCE)} of such comparisons at most. Fewer"
    f" than {LEAST} repetitions are never sure.",
    "not told apart": "of two conditions: their runs differ by no more than chance alone may make them differ, so that"
    " either may be the faster one.",
    "robust z": "of a brain volume: its distance from the median of the dataset, in units of the usual distance.",
}
"""Explanations of words on pages that not all readers know."""


def glossary(*names: str) -> Section:
    """A folded section that explains some words, for the place where a reader meets them first."""
    return Section(facts={name: MEANINGS[name] for name in names}, folded=f"What is meant by {', '.join(names)}")


def own_reference() -> str:
    """The authors, year and address of neurotier from ``CITATION.cff``."""
    entry = read_yaml((ROOT / "CITATION.cff").read_text())
    authors = [one.get("name") or f"{one['given-names']} {one['family-names']}" for one in entry["authors"]]
    known = [*authors, str(entry["date-released"])[:4], entry.get("url") or entry.get("repository-code")]
    return ", ".join(filter(None, known))


def at_once(parallelism: int) -> str:
    """How many jobs were to run at once, in words.

    >>> at_once(25)
    '25 at once'
    """
    return f"{parallelism:,} at once"


def spread_text(spread: Spread) -> str:
    """The median and range of times, s, in words.

    >>> spread_text(Spread((1253.0, 1300.0, 1244.0))), spread_text(Spread((31.24,)))
    ('1,253 s (1,244 to 1,300, 3 runs)', '31.2 s (1 run)')
    """
    median, low, high = (seconds(value).removesuffix(" s") for value in (spread.median, spread.low, spread.high))
    count = len(spread.values)
    return f"{median} s ({low} to {high}, {count} runs)" if count > 1 else f"{median} s (1 run)"


def between(texts: Iterable[str]) -> str:
    """The first and the last of at least one text, joined; or just one of them if they are equal.

    >>> between(["2 s", "3 s", "4 s"]), between(["2 s"])
    ('2 s to 4 s', '2 s')
    """
    first, *_, last = [*texts] * 2
    return first if first == last else f"{first} to {last}"


MOVED = ("read_bytes", "write_bytes")
VERSIONS = ("fio_version", "ior_version", "engine_version")
"""Columns with the version of the program that measured."""


def workload_page(
    name: str,
    measured: str,
    parts: Sequence[Part],
    method: str,
    tables: Sequence[str] = (),
    note: str = "",
    **about: Any,
) -> Page:
    """The page of a workload, whose table has the same name.

    Parameters
    ----------
    measured
        Text about the measured points, below the title.
    parts
        The workload's own parts, which are followed by those that all workloads have.
    method
        How it is measured, in a sentence or two.
    tables
        Further tables.
    note
        A note on its tiers.
    about
        Other arguments of :class:`Page`.
    """
    return Page(
        name=name,
        subtitle=lambda data: counts_text(data[name], measured),
        tables=[f"{name}/{table}" for table in (name, *tables)],
        parts=(
            *parts,
            lambda data: tiers(data[name], note),
            lambda data: unmeasured(data[name]),
            Section("How it is measured", method),
        ),
        **about,
    )


def counts_text(points: Rows, what: str) -> str:
    """How many points were measured, in words, followed by ``what`` if there are any."""
    count = len(measured_rows(points))
    return f"{count:,} of {counted(len(points), 'point')} measured{what if count else ''}"


def tiers(points: Rows, note: str) -> Section:
    """The section on the tiers: where and with what they were measured, and how many bytes were moved."""
    rows = []
    for own in grouped((row["tier"], row) for row in points).values():
        measured = measured_rows(own) or own
        about = {
            name: ", ".join(dict.fromkeys(word for row in measured for word in (row[name] or "").split()))
            for name in ("host", "kernel")  # several, since kept points may be from an earlier kernel
        }
        programs = {row[name] for row in own for name in VERSIONS if row.get(name)}
        about["measured_by"] = ", ".join(sorted(programs))
        rows.append(own[0] | about | {name: sum(row[name] or 0 for row in own) for name in MOVED})
    columns = f"tier kind fs_type host kernel measured_by {' '.join(MOVED)}"
    return Section("Tiers", rows=rows, columns=columns, note=note)


def unmeasured(points: Rows) -> Section:
    """The section on the points that were not measured, and why, by tier and set."""
    counts = Counter((row["tier"], row["set"], row["status"]) for row in points if row["status"] != MEASURED)
    rows = [{"tier": tier, "set": name, "points": count, "why": why} for (tier, name, why), count in counts.items()]
    folded = f"{counted(counts.total(), 'point')}: why, by tier and set; what failed, the next start measures again"
    return Section("Not measured", rows=rows, folded=folded)


def published_numbers(numbers: Sequence[PublishedNumber], text: str) -> Section:
    """The section on what a paper states, where, and what it leaves open."""
    rows = [
        {"published": one.name, "number": one.text, "where": one.place, "what_the_text_leaves_open": one.open_points}
        for one in numbers
    ]
    return Section("Published numbers", text, rows)
