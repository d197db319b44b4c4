"""Describing a real run: from what the meter has recorded of it to a description that can be rehearsed."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from neurotier.analysis.rehearsal.description import parse, written
from neurotier.core.errors import InputError, SettingsError, one_line
from neurotier.core.foreign import blaming, read_named
from neurotier.meter.folders import Held
from neurotier.meter.traffic import FILE_SIZES

LIMIT_BYTES = 256 << 20
"""Largest file that records are read from: one of a participant with very many derivatives, or very many lines."""

Record = Mapping[str, Any]


def describe(file: Path, phase: str | None) -> str:
    """A description, as YAML, of a participant's record or of what ``neurotier meter --record`` has written.

    Parameters
    ----------
    file
        A participant's record below ``profile/records``, or a file of JSON lines.
    phase
        The phase of the record, by default ``compute``; or the name of a line, by default the last line.

    Raises
    ------
    InputError
        If it is neither, has no such phase, or does not tell how many files were made.
    """
    where = str(file)
    record = read_record(file, where)
    try:
        found = phase_of(record, phase, where)
        text = written(*figures_of(record, found, where))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = f"{type(error).__name__}: {one_line(str(error))[:100]}"
        raise InputError(f"is no record of a participant or of neurotier meter ({why})", where=where) from None
    try:
        parse(text, where)
    except SettingsError as error:
        raise InputError(f"cannot be described: {error.what}", where=error.where) from None
    return text


def read_record(file: Path, where: str) -> list[Any]:
    """The JSON values of a file, one in all or one per line.

    Raises
    ------
    InputError
        If it cannot be read as JSON.
    """
    with blaming(where):
        content = read_named(file, LIMIT_BYTES, "a record")
    for parts in ([content], content.splitlines()):
        with suppress(ValueError, RecursionError):
            return [json.loads(part) for part in parts if part.strip()]
    raise InputError("is no JSON", where=where, fix="name a record or a file of neurotier meter --record")


def phase_of(values: Sequence[Any], phase: str | None, where: str) -> Record:
    """The phase that is described, with its flows under ``flows`` and its results under ``derivatives``."""
    if len(values) == 1 and "phases" in values[0]:
        record, wanted = values[0], phase or "compute"
        phases = {each["phase"]: each for each in record["phases"]}
        if wanted not in phases:
            known = ", ".join(map(str, phases))
            raise InputError(f"has no phase {wanted!r}", where=where, fix=f"use --phase with one of {known}")
        return {**phases[wanted], "flows": phases[wanted]["traffic"]}
    named = [value for value in values if phase in (None, value["phase"])]
    if not named:
        raise InputError(f"has no line of phase {phase!r}", where=where)
    return {**named[-1], "flows": named[-1]["tiers"]}


def figures_of(values: Sequence[Any], found: Record, where: str) -> tuple[str, dict[str, tuple[Any, str]]]:
    """What was run, and the figures with their sources, for one image."""
    record = values[0] if "phases" in values[0] else {}
    flows = [flow for flow in found["flows"] if flow["traffic_source"] == "growth" and "made_files" in flow]
    if not flows:
        raise InputError(
            "does not tell how many files were made",
            where=where,
            fix="meter it with this version" + ("" if record else ", with --tier NAME=FOLDER of what it writes to"),
        )
    images = images_in(record)
    many = "" if images == 1 else f", for one of {images} images"
    results, scratch = Held(), Held()
    for size_bytes, _ in record.get("derivatives", {}).values():
        results.add_file(int(size_bytes))
    for flow in flows:
        made = Held()
        made.sizes = {magnitude: (files, total) for magnitude, files, total in flow[FILE_SIZES]}
        scratch.add(made)
    scratch.add(results, -1)
    pairs = pairs_of(scratch, images)
    removed, walks, left_folders = (
        sum(flow[name] or 0 for flow in flows) for name in ("removed_files", "file_walks", "left_folders")
    )
    removed, unseen = -(-removed // images), ""
    if removed:
        left_files, left_bytes = map(sum, zip((0, 0), *scratch.sizes.values(), strict=True))
        pairs.append([removed, left_bytes // left_files if left_files else 0])
        unseen = "; the sizes of those that were removed are not known, and taken for the mean"
    cpu_s = found["user_s"] + found["system_s"] - sum(flow.get("removal_cpu_s") or 0.0 for flow in flows)
    read, read_source = bytes_of(found, "read")
    wrote, wrote_source = bytes_of(found, "written")
    figures = {
        "files": (pairs, f"measured: files that were left, by powers of two of their sizes{many}{unseen}"),
        "folders": (
            min(left_folders // images, sum(count for count, _ in pairs)),
            f"measured: folders that were left{many}",
        ),
        "removed_files": (
            removed,
            f"measured, at least, by {walks} walks{many}" if walks else "not known: there was no walk in between",
        ),
        "read_bytes": (read // images, read_source + many),
        "read_files": (0, "not known: the meter does not see such calls"),
        "written_bytes": (wrote // images, wrote_source + many),
        "cpu_s": (round(max(0.0, cpu_s) / images, 6), f"measured: {found['cpu_source']}{many}"),
        "threads": (threads_of(found), "measured: CPU time over the wall time in which any thread computed, rounded"),
        "memory_bytes": (found["max_rss_bytes"], f"measured, of the largest process: {found['memory_source']}"),
        "results": (pairs_of(results, images), f"measured: derivatives{many}" if record else "not known of a command"),
    }
    return about(record, found), figures


def about(record: Record, found: Record) -> str:
    """What was run, where and when."""
    what = f"command {' '.join(map(str, found.get('command', [])))}"
    if record:
        what = f"{record['tool']} of {record['participant']}, phase {found['phase']}"
    when = time.strftime("%Y-%m-%d", time.gmtime(found["start_s"]))
    return f"{one_line(what)[:300]}, on {(record or found)['host']}, {when}"


def images_in(record: Record) -> int:
    """Images that a participant has: a description is of one. An app does all at once, and is taken for one."""
    if "calls" in record or not record:
        return 1
    staged = [flow for phase in record["phases"] if phase["phase"] == "stage_in" for flow in phase["traffic"]]
    return max(1, *(int(flow["read_files"] or 0) for flow in staged))


def pairs_of(held: Held, images: int) -> list[list[int]]:
    """Numbers of files and bytes of each, so that both sums are kept, for one of several images.

    >>> held = Held()
    >>> held.sizes = {0: (0, 0), 4: (6, 62)}
    >>> pairs_of(held, 1), pairs_of(held, 2)
    ([[4, 10], [2, 11]], [[2, 10], [1, 11]])
    """
    pairs = []
    for _, (files, total) in sorted(held.sizes.items()):
        count, size = -(-files // images), total // images
        if count:
            pairs += [[count - size % count, size // count], [size % count, size // count + 1]]
    return [pair for pair in pairs if pair[0]]


def bytes_of(found: Record, way: str) -> tuple[int, str]:
    """Bytes that were read or written, and how that is known."""
    for name, through in (("logical", "through calls"), ("device", "to and from devices alone")):
        value = found[f"{name}_{way}_bytes"]
        if value is not None:
            return int(value), f"measured, {through}: {found['bytes_source']}"
    return 0, "not known"


def threads_of(found: Record) -> int:
    """How many threads computed at the same time, on average."""
    computing = [found[name] for name in ("account_user_s", "account_system_s")]
    wall_s = sum(computing) if None not in computing else found["wall_s"]
    return max(1, min(1024, round((found["user_s"] + found["system_s"]) / wall_s))) if wall_s else 1
