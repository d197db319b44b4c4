"""fio's jobs of a point: writers that get their data at a fixed rate, and the check of every record they wrote.

A record is a block of fio's verification: it begins with its place among the records of its writer, the seed that its
place has, and a checksum of all of it. Checking reads the files in order, so that a record that is lost, doubled,
exchanged or damaged is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from neurotier.storage.daq.points import Point
from neurotier.storage.fio import FioJob

FILES = "daq"
VERIFIED = (("verify", "crc32c"), ("verify_pattern", "0x6e65"), ("verify_state_save", "0"))
"""A fixed pattern: making random data would take longer than writing them to a fast tier."""


def flushes(engine: str, in_memory: bool) -> bool:
    """Whether writers of an engine flush while they write: mapped files cannot, and those in memory have no need."""
    return engine != "mmap" and not in_memory


def write_job(point: Point, folders: Sequence[Path], in_memory: bool) -> FioJob:
    """The writers, dealt out over the folders."""
    options = [*VERIFIED, ("do_verify", "0"), ("rate", str(point.rate_bytes_per_s))]
    if flushes(point.engine, in_memory):
        records = round(point.rate_bytes_per_s * point.flush_s / point.record_bytes)
        options += [("fdatasync", str(max(1, records)))]
    return FioJob(
        name=f"{point.writers} writers",
        pattern="write",
        block_bytes=point.record_bytes,
        file_bytes=point.file_bytes,
        engine=point.engine,
        direct=point.engine == "libpmem",
        runtime_s=point.writing_s,
        end_fsync=True,
        fresh=True,
        files=FILES,
        options=tuple(options),
        each=tuple(tuple(place_of(writer, folders)) for writer in range(point.writers)),
    )


def check_job(point: Point, folders: Sequence[Path], written: Sequence[int]) -> FioJob:
    """The check of what each writer has written, bytes."""
    each: list[tuple[tuple[str, str], ...]] = []
    for writer, size_bytes in enumerate(written):
        if not size_bytes:  # seeds go by the place of a job, so one stands there all the same
            each.append((("ioengine", "null"), ("verify", "0"), ("size", str(point.record_bytes))))
            continue
        each.append((*place_of(writer, folders), ("size", str(size_bytes))))
    return FioJob(
        name="check",
        pattern="read",
        block_bytes=point.record_bytes,
        file_bytes=point.file_bytes,
        options=(*VERIFIED, ("verify_fatal", "1")),
        each=tuple(each),
    )


def file_of(writer: int, folders: Sequence[Path]) -> Path:
    """A writer's file."""
    return folders[writer % len(folders)] / f"{FILES}.{writer}"


def place_of(writer: int, folders: Sequence[Path]) -> list[tuple[str, str]]:
    """Its file as fio's options, where a colon parts paths; a single folder is where fio runs."""
    file = file_of(writer, folders)
    own = [("directory", str(file.parent).replace(":", "\\:"))] if len(folders) > 1 else []
    return [*own, ("filename", file.name)]
