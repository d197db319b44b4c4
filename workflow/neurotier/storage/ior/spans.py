"""Spans: when each process of a point began and ended, and what all of them reached, as IOR counts it.

fio says how long each process took, and its logs when the first request of each was made; so processes of several
nodes are laid over each other, as far as the nodes' clocks agree.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from neurotier.core.errors import ToolError
from neurotier.storage.fio import FioJob, FioResult
from neurotier.storage.workspace import Workspace

Span = dict[str, Any]
"""What a process did: ``node`` and ``process``, both from 0, ``start_s`` and ``end_s``, s since 1970 by its node, and
``bytes``."""


def run_logged(workspace: Workspace, job: FioJob, limit_s: float, node: int = 0) -> tuple[FioResult, list[Span]]:
    """Run a job, which is named ``write`` or ``read``, on a node; with what each process did.

    Raises
    ------
    ToolError
        If fio fails, or did not log its requests.
    TierError
        If the tier fills up.
    """
    with tempfile.TemporaryDirectory(prefix="neurotier-ior-") as folder:
        logs = Path(folder, job.name)
        done = workspace.run(replace(job, options=(*job.options, *log_options(logs))), limit_s)
        return done, read_spans(node, job.name, done, logs)


def log_options(prefix: Path) -> tuple[tuple[str, str], ...]:
    """fio's options that have each process log its requests, in time since 1970, to files that begin so."""
    return (
        ("write_lat_log", str(prefix)),
        ("log_unix_epoch", "1"),
        ("disable_clat", "1"),  # else there were three logs
        ("disable_slat", "1"),
    )


def first_request_s(log: Path) -> float:
    """When the first request of a log was made, s since 1970 (fio 3.29 and later).

    A line has the time at which a request was done, ms, and what it took, ns.

    Raises
    ------
    ToolError
        If fio wrote none, or in another way than is known here.
    """
    try:
        with log.open() as file:
            done_ms, took_ns, *_ = file.readline().split(",")
        return int(done_ms) / 1e3 - int(took_ns) / 1e9
    except (OSError, ValueError):
        raise ToolError("fio did not log when its requests were made", where=str(log), fix="take fio 3.33") from None


def read_spans(node: int, pattern: str, done: FioResult, prefix: Path) -> list[Span]:
    """The processes of a node, by what fio says and its logs (:func:`log_options`)."""
    spans = []
    for process, stream in enumerate(done.streams):
        flow = stream.write if pattern == "write" else stream.read
        start_s = first_request_s(prefix.with_name(f"{prefix.name}_lat.{process + 1}.log"))
        times = {"start_s": start_s, "end_s": start_s + flow.runtime_s}
        spans.append({"node": node, "process": process, **times, "bytes": flow.bytes})
    return spans


def together(spans: Sequence[Span]) -> float:
    """All bytes over the time from the first start to the last end, bytes/s.

    >>> together([{"start_s": 10.0, "end_s": 12.0, "bytes": 600}, {"start_s": 11.0, "end_s": 13.0, "bytes": 600}])
    400.0
    """
    taken_s = span_s(spans)
    return sum(span["bytes"] for span in spans) / taken_s if taken_s else 0.0


def span_s(spans: Sequence[Span]) -> float:
    """Time from the first start to the last end, s."""
    return float(max(span["end_s"] for span in spans) - min(span["start_s"] for span in spans))


def by_nodes(spans: Sequence[Span], count: int) -> list[float]:
    """What each group of so many nodes, in order, reached, bytes/s."""
    groups: dict[int, list[Span]] = {}
    for span in spans:
        groups.setdefault(span["node"] // count, []).append(span)
    return [together(group) for group in groups.values()]


def cells_of(pattern: str, spans: Sequence[Span], nodes: int, concurrent: int) -> dict[str, Any]:
    """What all processes of a point reached, as cells of the table.

    Parameters
    ----------
    pattern
        ``write`` or ``read``.
    spans
        Of all processes of all nodes.
    nodes, concurrent
        Of the point. The bandwidths of benchmarks at once, each counted by itself, are added.
    """
    own, streams = by_nodes(spans, 1), [together([span]) for span in spans]
    starts = [span["start_s"] for span in spans]
    return {
        f"{pattern}_bytes_per_s": sum(by_nodes(spans, nodes // concurrent)),
        f"{pattern}_span_s": span_s(spans),
        f"{pattern}_bytes": sum(span["bytes"] for span in spans),
        f"{pattern}_least_bytes_per_s": min(streams),
        f"{pattern}_most_bytes_per_s": max(streams),
        f"{pattern}_nodes_bytes_per_s": sum(own),
        f"{pattern}_node_least_bytes_per_s": min(own),
        f"{pattern}_node_most_bytes_per_s": max(own),
        f"{pattern}_start_spread_s": max(starts) - min(starts),
    }
