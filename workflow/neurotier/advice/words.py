"""The advice in words: what limits a placement, the recommendation as a sentence, the table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from neurotier.core.quantities import about, aligned, percent, seconds
from neurotier.core.tables import Row, Rows, grouped

COMPUTING = "computing"
AT_ONCE = "for which memory and the work tier have room"
NOTHING = 0.005
"""Gains smaller than this share are not mentioned."""


def limit_text(limit: str, parallelism: int, cores: int, threads: int = 1) -> str:
    """The limit, in words, that takes most of the time of ``parallelism`` jobs with ``threads`` threads each.

    >>> limit_text("processors", 2, 2), limit_text("processors", 4, 2)
    ('computing', 'computing, 4 jobs on 2 cores')
    >>> limit_text("processors", 25, 16, threads=2)
    'computing, 25 jobs of 2 threads on 16 cores'
    >>> [limit_text(limit, 2, 2) for limit in ("disk read", "one stream on disk", "launch", "the page cache write")]
    ['reading from disk', 'one stream on disk', 'starting jobs and fetching images', 'writing to the page cache']
    """
    if limit == "processors":
        of = f" of {threads} threads" if threads > 1 else ""
        return COMPUTING if parallelism * threads <= cores else f"{COMPUTING}, {parallelism} jobs{of} on {cores} cores"
    if limit in ("launch", "wait"):
        return {"launch": "starting jobs and fetching images", "wait": "waiting for neither processor nor tier"}[limit]
    if limit.startswith(("one stream on ", "small files on ")):
        return limit
    tier, direction = limit.rsplit(" ", 1)
    return f"{'reading from' if direction == 'read' else 'writing to'} {tier}"


def interval(row: Row) -> str:
    """The predicted makespan and its interval, in the same unit.

    >>> interval({"predicted_s": 41.3, "low_s": 36.0, "high_s": 49.4})
    '41 s (36 to 49)'
    """
    value = about(row["predicted_s"])
    unit = value.split()[1]
    scale = {"h": 3600.0, "min": 60.0, "s": 1.0}[unit]
    digits = 1 if unit == "h" else 0 if unit == "min" or row["predicted_s"] >= 9.95 else 2
    low, high = (f"{row[end] / scale:,.{digits}f}" for end in ("low_s", "high_s"))
    return f"{value} ({low} to {high})"


def recommendation(rows: Sequence[Row]) -> str:
    """The recommendation among placements at one parallelism and one state of the page cache.

    A difference does not matter if one of two predictions lies within the interval of the other.
    """
    fitting = [row for row in rows if row["fits"]]
    misfits = [f"{row['placement']} does not fit: {row['reason']}" for row in rows if not row["fits"]]
    if not fitting:
        return sentence("no placement fits", misfits)
    best, *others = sorted(fitting, key=lambda row: float(row["predicted_s"]))
    used = next((row for row in fitting if row["in_use"]), None)
    if not others:
        only = f"only {best['placement']} fits" if misfits else f"there is no choice but {best['placement']}"
        return sentence(f"{only}: {interval(best)}, limited by {limited(best)}", misfits)
    slower = [row for row in fitting if matters(best, row)]
    either = " or ".join(row["placement"] for row in fitting if row not in slower)
    no_matter = f"it does not matter {f'whether {either}' if slower else f'where {differing_role(rows)} lies'}"
    far = [f"{row['placement']} takes {interval(row)}, limited by {limited(row)}" for row in slower]
    if used is None or used is best:
        second = others[0]
        gain = 1 - best["predicted_s"] / second["predicted_s"]
        if matters(best, second):
            verb = "take" if used is None else "stay with"
            text = f"{verb} {best['placement']}: {interval(best)}, and {second['placement']} takes {interval(second)}"
        elif gain < NOTHING:
            text = f"{bound(best)}{no_matter}"
        else:
            by = f"{best['placement']} saves {percent(gain)} against {second['placement']}"
            text = f"{bound(best)}{by}, within the interval of the predictions: it does not matter"
        return sentence(text, [*(far if len(slower) < len(others) else []), *misfits])
    gain = 1 - best["predicted_s"] / used["predicted_s"]
    if not matters(best, used):
        saves = f"{best['placement']} saves {percent(gain)}, within the interval of the predictions: "
        text = f"{bound(used)}{saves if gain >= NOTHING else ''}{no_matter}"
        return sentence(text, [*far, *misfits])
    return sentence(
        f"place {differing_role(rows)} on {best['placement']}: {interval(best)} instead of {interval(used)},"
        f" which is limited by {limited(used)}",
        misfits,
    )


def matters(best: Row, other: Row) -> bool:
    """Whether the second row is slower, and each of the two predictions lies outside the interval of the other."""
    return bool(other["predicted_s"] > best["high_s"] and best["predicted_s"] < other["low_s"])


def bound(row: Row) -> str:
    """What limits the jobs, as the beginning of a sentence."""
    by_cores = row["limit"].startswith(COMPUTING) and not row["limit"].endswith(AT_ONCE)
    return "you are compute-bound: " if by_cores else f"limited by {limited(row)}: "


def limited(row: Row) -> str:
    """The limit and its share of the jobs' time."""
    return f"{row['limit']} ({percent(row['limit_share'])} of the jobs' time)"


def differing_role(rows: Sequence[Row]) -> str:
    """The role whose tier differs between placements, or "the data" if several do."""
    roles = [role for role in ("dataset", "work", "results") if len({row[f"{role}_tier"] for row in rows}) > 1]
    return f"the {roles[0]}" if len(roles) == 1 else "the data"


def sentence(text: str, more: Sequence[str]) -> str:
    """A sentence with further clauses."""
    return f"{text[:1].upper()}{text[1:]}" + "".join(f"; {part}" for part in more)


def alike(rows: Sequence[Row]) -> dict[tuple[int, str], Rows]:
    """The rows of each parallelism and state of the page cache."""
    return grouped(((row["parallelism"], row["cache"]), row) for row in rows)


def advices(rows: Rows) -> list[str]:
    """A recommendation for each parallelism and state of the page cache."""
    groups = alike(rows)
    return [
        (f"{parallelism} at once, cache {cache}: " if len(groups) > 1 else "") + recommendation(group)
        for (parallelism, cache), group in groups.items()
    ]


def text_table(rows: Rows) -> list[str]:
    """The table for a terminal."""
    cells = [
        [
            row["placement"] + (" (in use)" if row["in_use"] else ""),
            str(row["parallelism"]),
            row["cache"],
            interval(row),
            seconds(row["paper_s"]),
            f"{row['limit']}, {percent(row['limit_share'])}",
            "yes" if row["fits"] else f"no: {row['reason']}",
        ]
        for row in rows
    ]
    return aligned([["placement", "at once", "cache", "makespan", "Eq. (1)", "limited by", "fits"], *cells])
