"""The check of a node: which declared tiers a job finds there, in what state, and what the node is like.

The machine that Snakemake runs on writes a file on each tier that it has; if a job sees the same file, the tier is
shared.
"""

from __future__ import annotations

import os
import platform
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from neurotier.core.control_groups import memory, usable_cores
from neurotier.core.errors import NeurotierError, TierError
from neurotier.core.files import read_or_empty, write_secret
from neurotier.core.places import Places, short_hash
from neurotier.core.private import clear, make_private, read_private
from neurotier.core.quantities import aligned, counted, size
from neurotier.core.settings import Settings
from neurotier.core.tables import EMPTY, Row, Rows, columns
from neurotier.core.tiers import Tier
from neurotier.meter.exits import DELAY_SWITCH

SEEN_WITHIN_S = 5.0
"""How long a node may take to see a file that another has just written on a network file system."""

Marks = Mapping[str, str]
"""The text of the file that was written on each tier, by the tier's name."""


def folder_on(tier: Tier, places: Places) -> Path:
    """Where a check for these results writes on a tier."""
    return tier.folder("check") / short_hash(str(places.results))


def mark_tiers(settings: Settings, places: Places) -> dict[str, str]:
    """Write a file on each tier that this machine has, for jobs to find; returns the text of each, by tier."""
    marks = {}
    for tier in tiers_here(settings):
        with suppress(NeurotierError, OSError):
            text = secrets.token_hex(8)
            write_and_read(folder_on(tier, places) / "mark", text)
            marks[tier.name] = text
    return marks


def remove_marks(settings: Settings, places: Places) -> None:
    """Remove the files of :func:`mark_tiers` from the tiers of this machine; tiers that cannot be cleared are left as
    they are."""
    for tier in tiers_here(settings):
        with suppress(NeurotierError, OSError):
            clear(folder_on(tier, places))


def tiers_here(settings: Settings) -> Iterator[Tier]:
    """The declared tiers that this machine has and may write to, without those that each node has for itself."""
    for declared in settings.tiers.values():
        with suppress(NeurotierError, OSError):
            tier = Tier.from_settings(declared)
            tier.require_answer()
            if not (tier.node or tier.read_only) and tier.path.is_dir():
                yield tier


def write_and_read(file: Path, text: str) -> None:
    """Write a private file, read it back and compare.

    Raises
    ------
    OSError, NeurotierError
        If it cannot be written, or is not read back as it was written.
    """
    make_private(file.parent)
    write_secret(file, text)
    if file.read_text() != text:
        raise TierError("does not give back what was written", file)


def check_node(settings: Settings, places: Places, node_class: str, marks: Marks | None) -> Rows:
    """Rows of ``check.tsv``: every declared tier as this node finds it.

    Parameters
    ----------
    settings, places
        Of the run.
    node_class
        Class of this node; empty if the check is of this host alone.
    marks
        What the machine that Snakemake runs on wrote; ``None`` if this node is that machine.
    """
    node, rows = dict.fromkeys(columns("check")) | node_facts(node_class), []
    for name, declared in settings.tiers.items():
        row = {**node, "tier": name, "in_use": name in settings.tiers_in_use, "path": declared.path}
        row |= {"kind": declared.kind, "there": False, "writable": False}
        with noting_problem(row):
            tier = Tier.from_settings(declared)
            tier.require_answer()
            tier = tier.here()
            row |= {"path": str(tier.path), "there": tier.path.is_dir()}
            if row["there"]:
                look_at(tier, places, row)
                if marks is not None and (declared.node or name in marks):
                    row["shared"] = not declared.node and is_seen(folder_on(tier, places) / "mark", marks[name])
            tier.check()  # its problem takes precedence
        rows.append(row)
    return rows


@contextmanager
def noting_problem(row: Row) -> Iterator[None]:
    """Note an error as the problem of a tier, in one line that names the tier."""
    try:
        yield
    except NeurotierError as error:
        row["problem"] = str(error)
    except OSError as error:
        row["problem"] = f"tier {row['tier']!r}: {error.filename}: {error.strerror}"


def look_at(tier: Tier, places: Places, row: Row) -> None:
    """Add to a row what this node finds of a tier; on a tier that may be written, a file is written and removed."""
    mount = tier.mount()
    row |= {"found_kind": mount.kind, "fs_type": mount.fs_type, "device": mount.source}
    row |= {"total_bytes": shutil.disk_usage(tier.path).total, "usable_bytes": tier.usable_bytes()}
    if tier.read_only:
        return
    folder = folder_on(tier, places).with_name(f"{socket.gethostname()}-{os.getpid()}")
    with noting_problem(row):
        try:
            write_and_read(folder / "written", secrets.token_hex(8))
            row["writable"] = True
        finally:
            with suppress(NeurotierError, OSError):
                clear(folder)


def is_seen(file: Path, text: str) -> bool:
    """Whether a private file of this user with this text is here, or appears shortly; another user may have planted
    one."""
    deadline = time.monotonic() + SEEN_WITHIN_S
    while read_private(file) != text:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.5)
    return True


def node_facts(node_class: str) -> Row:
    """The columns of ``check.tsv`` about the node, and about what a job may use of it."""
    host = socket.gethostname()
    return {
        "node_class": node_class or host,
        "host": host,
        "kernel": f"{platform.system()} {platform.release()}",
        "cores": os.cpu_count() or 1,
        "job_cores": float(usable_cores()),
        "memory_bytes": psutil.virtual_memory().total,
        "job_memory_bytes": min((limit_bytes for limit_bytes, _ in memory()), default=None),
        # If the kernel cannot account for waits, the switch does not exist.
        "delay_accounting": {b"0\n": False, b"1\n": True}.get(read_or_empty(Path(DELAY_SWITCH))),
        "user_namespaces": subprocess.call(["sh", "-c", "unshare --user --map-root-user true 2>/dev/null"]) == 0,
        "fio": shutil.which("fio") is not None,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def problems(rows: Sequence[Row]) -> list[str]:
    """Why tiers in use cannot be used, one line each."""
    return [row["problem"] for row in rows if row["in_use"] and row["problem"]]


def check_lines(rows: Sequence[Row]) -> list[str]:
    """The table for a terminal: two lines about the node, and one for each tier."""
    node = rows[0]
    held = node["job_memory_bytes"]
    held_to = [*([f"{size(held)} of memory"] if held else []), f"{node['job_cores']:g} cores"]
    of_class = f" of class {node['node_class']}" if node["node_class"] != node["host"] else ""
    has = f"{counted(node['cores'], 'core')}, {size(node['memory_bytes'])}"
    switches = {"delay accounting": "delay_accounting", "user name spaces": "user_namespaces", "fio": "fio"}
    lines = [["tier", "in use", "kind", "there", "writable", "shared", "room", "path"]]
    for row in rows:
        kind = row["kind"] if row["found_kind"] in (None, row["kind"]) else f"{row['kind']}, but is {row['found_kind']}"
        there = [answer(row[name]) for name in ("there", "writable", "shared")]
        path = row["path"] + (f" ({row['fs_type']})" if row["fs_type"] else "")
        lines.append([row["tier"], answer(row["in_use"]), kind, *there, size(row["usable_bytes"]), path])
    return [
        f"Node {node['host']}{of_class}, {node['kernel']}: {has}; a job like this one has {' and '.join(held_to)}",
        "; ".join(f"{name}: {answer(node[key])}" for name, key in switches.items()),
        *aligned(lines),
    ]


def answer(value: Any) -> str:
    """Yes, no, or unknown."""
    return EMPTY if value is None else "yes" if value else "no"
