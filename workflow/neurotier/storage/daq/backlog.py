"""The backlog: data that have come and are not written yet, which a memory buffer must hold, over time.

When a record was written stands in the record itself: fio's verification puts the time beside its number. That is exact
where fio's logs of bandwidth, which tell of windows in which anything was written, are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

MAGIC = 0xACCA
HEADER = [
    *(("magic", "<u2"), ("kind", "<u2"), ("len", "<u4"), ("seed", "<u8"), ("offset", "<u8")),
    *(("seconds", "<u4"), ("nanoseconds", "<u4")),
]
"""The beginning of ``struct verify_header`` of fio 3."""

SAMPLES, STEPS = 1000, 200
"""Most records that are looked at in each file, and points of a curve."""

Curve = list[tuple[float, float]]
"""Time since the start, s, and backlog, bytes."""


def backlog(
    files: Sequence[Path], written: Sequence[int], record_bytes: int, input_bytes_per_s: float, writing_s: float
) -> Curve:
    """The backlog of all writers together; nothing if fio's records are not as they are known here.

    Parameters
    ----------
    files
        Of each writer.
    written
        What it has written, bytes.
    record_bytes
        Size of a record.
    input_bytes_per_s
        Rate at which data come to all of them.
    writing_s
        How long they wrote, s.
    """
    stamps = [read_stamps(*one, record_bytes) for one in zip(files, written, strict=True)]
    known = [one for one in stamps if one]
    if len(known) < len(stamps):
        return []
    begun_s = min(one[0][0] for one in known)
    times = np.linspace(0, min(writing_s, max(one[-1][0] for one in known) - begun_s), STEPS)
    total = sum((np.interp(times, [at - begun_s for at, _ in one], [by for _, by in one]) for one in known), 0 * times)
    held = np.maximum(0.0, times * input_bytes_per_s - total)
    return list(zip(times.tolist(), held.tolist(), strict=True))


def read_stamps(file: Path, written_bytes: int, record_bytes: int) -> list[tuple[float, int]]:
    """When some records of a writer were written, s by fio's clock, and the bytes before each."""
    count = written_bytes // record_bytes
    if not count:
        return []
    header = np.dtype(HEADER)
    rest = ("rest", f"V{record_bytes - header.itemsize}")
    records = np.memmap(file, np.dtype([*HEADER, rest]), "r", shape=(count,))
    looked = records[:: max(1, count // SAMPLES)]
    if not ((looked["magic"] == MAGIC) & (looked["len"] == record_bytes)).all():
        return []
    times = looked["seconds"] + 1e-9 * looked["nanoseconds"]
    return [(float(at), int(before)) for at, before in zip(times, looked["offset"], strict=True)]
