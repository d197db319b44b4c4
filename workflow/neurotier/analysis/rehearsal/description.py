"""Descriptions of what a pipeline does to storage and processors, as YAML; the schema is ``rehearsal.schema.yaml``.

A description may come from anybody, so it is read as foreign data: a regular file of limited size, without anchors (a
few lines of which can expand to gigabytes), and with every figure within bounds.

A description can also be made from what the meter recorded of a real run.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from neurotier.core.configuration import SCHEMAS, read_yaml, require_valid
from neurotier.core.errors import InputError, SettingsError, one_line
from neurotier.core.files import Record, absolute_path
from neurotier.core.foreign import blaming, read_named
from neurotier.meter.folders import Held
from neurotier.meter.traffic import FILE_SIZES

PROFILES = Path(__file__).with_name("profiles")

LIMIT_BYTES = 64 << 10
"""Largest description."""

PORTIONS = 100
"""Most portions that the work is divided into."""

FILES_OF_A_PORTION, SECONDS_OF_A_PORTION = 100, 0.02
"""A portion has at least about this many files, or this much CPU time."""

BLOCK_BYTES = 4096
"""The unit in which file systems usually allocate space: a small file takes one block."""

WHERE = "config key tool.rehearsal.profile"

Pairs = tuple[tuple[int, int], ...]
"""Pairs of a number of files, and bytes of each."""


class Description(NamedTuple):
    """What is done for one image; attributes as in the schema."""

    files: Pairs
    folders: int
    removed_files: int
    read_bytes: int
    read_files: int
    written_bytes: int
    cpu_s: float
    threads: int
    memory_bytes: int
    results: Pairs

    @property
    def made_files(self) -> int:
        """Number of files made in the work folder, without results."""
        return sum(count for count, _ in self.files)

    @property
    def made_bytes(self) -> int:
        """Total size of these files, bytes."""
        return sum(count * each for count, each in self.files)

    @property
    def portions(self) -> int:
        """Number of portions that the work is divided into, so that files and computing alternate."""
        return max(1, min(PORTIONS, max(self.made_files // FILES_OF_A_PORTION, int(self.cpu_s / SECONDS_OF_A_PORTION))))

    @property
    def peak_files(self) -> int:
        """Most files at once: files are removed portion by portion, after others were made."""
        in_a_portion = -(-self.made_files // self.portions) + len(self.files)
        return min(self.made_files, self.made_files - self.removed_files + in_a_portion)

    @property
    def peak_bytes(self) -> int:
        """Most room that these take, bytes: the oldest are removed first, and any may be the largest."""
        left, room_bytes = self.peak_files, 0
        for count, each in sorted(self.files, key=lambda pair: -pair[1]):
            room_bytes += in_blocks(((min(count, left), each),))
            left -= min(count, left)
        return room_bytes

    def scaled(self, factor: float) -> Description:
        """The same with ``factor`` times the files, bytes and CPU time, but with as many threads and as much memory."""

        files = scaled_pairs(self.files, factor)
        names = ("folders", "removed_files", "read_bytes", "read_files", "written_bytes")
        scaled = {name: round(getattr(self, name) * factor) for name in names}
        for name in ("folders", "removed_files"):
            scaled[name] = min(scaled[name], sum(count for count, _ in files))
        results = scaled_pairs(self.results, factor)
        return self._replace(files=files, results=results, cpu_s=self.cpu_s * factor, **scaled)


def scaled_pairs(pairs: Pairs, factor: float) -> Pairs:
    """``factor`` times the files; if that is less than one file, one file with their bytes.

    >>> scaled_pairs(((1000, 10), (4, 80_000)), 0.01)
    ((10, 10), (1, 3200))
    """
    return tuple(
        (round(count * factor), each) if count * factor >= 1 else (1, round(count * each * factor))
        for count, each in pairs
    )


def in_blocks(pairs: Pairs) -> int:
    """Room that files take on a tier, bytes.

    >>> in_blocks(((3, 1), (1, 4097), (5, 0)))
    20480
    """
    return sum(count * -(-each // BLOCK_BYTES) * BLOCK_BYTES for count, each in pairs)


@cache
def read_description(profile: str, scale: float) -> Description:
    """A description at a scale: one that comes with neurotier, by name, or any other, by path.

    Raises
    ------
    SettingsError
        If there is none of this name, or it is not valid; the error names the figure and its fault.
    """
    return parse(*text_of(profile)).scaled(scale)


def text_of(profile: str) -> tuple[str, str]:
    """The text of a description, and what to call it in an error; errors as :func:`read_description`."""
    file = PROFILES / f"{profile}.yaml"
    if "/" in profile or profile.endswith((".yaml", ".yml")):
        file = absolute_path(profile)
    elif not file.exists():
        known = ", ".join(sorted(file.stem for file in PROFILES.glob("*.yaml")))
        raise SettingsError(
            f"no description is named {profile!r}",
            WHERE,
            f"use one of {known}, or write a path that ends with .yaml",
        )
    where = f"{WHERE}: {file}"
    try:
        with blaming(where, SettingsError):
            return read_named(file, LIMIT_BYTES, "a description").decode(), where
    except UnicodeDecodeError:
        raise SettingsError("is not text", where) from None


def parse(text: str, where: str) -> Description:
    """A description from its text; errors name ``where``, otherwise as :func:`read_description`."""
    data = load(text, where)
    require_valid(data, read_yaml((SCHEMAS / "rehearsal.schema.yaml").read_text()), f"{where}:")
    values = {name: figure["value"] for name, figure in data["figures"].items()}
    if not math.isfinite(values["cpu_s"]):
        raise SettingsError("is not a number of seconds", f"{where}: figures.cpu_s")
    for name in ("files", "results"):
        values[name] = tuple((int(count), int(each)) for count, each in values[name] if count)
    whole = {name: int(value) for name, value in values.items() if isinstance(value, float) and name != "cpu_s"}
    description = Description(**values | whole)
    for name in ("removed_files", "folders"):
        if values[name] > description.made_files:
            raise SettingsError(f"are more than the {description.made_files:,} files", f"{where}: figures.{name}")
    return description


def load(text: str, where: str) -> Any:
    """The data of a YAML document without references.

    Raises
    ------
    SettingsError
        If it has references, or is not YAML.
    """
    import yaml

    try:
        if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(text, Loader=yaml.SafeLoader)):
            raise SettingsError("has references (*name), which no description needs", where)
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        what, mark = getattr(error, "problem", None) or type(error).__name__, getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        raise SettingsError(f"is not YAML that can be read: {what}{place}", where) from None


def description_yaml(about: str, figures: Mapping[str, tuple[Any, str]]) -> str:
    """A description as YAML; figures are pairs of value and source."""
    import yaml

    named = {name: {"value": value, "source": source} for name, (value, source) in figures.items()}
    return yaml.safe_dump({"about": about, "figures": named}, sort_keys=False, allow_unicode=True, width=110)


# Describing a real run: from the meter's record of it to a description that can be rehearsed.

RECORD_BYTES = 256 << 20
"""Largest file with records: one of a participant with very many derivatives, or very many lines."""


def describe(file: Path, phase: str | None) -> str:
    """A description, as YAML, made from a participant's record or from the output of ``neurotier meter --record``.

    Parameters
    ----------
    file
        A participant's record below ``profile/records``, or a file of JSON lines.
    phase
        The phase of the record, by default ``compute``; or the name of a line, by default the last line.

    Raises
    ------
    InputError
        If it is neither, has no such phase, or does not say how many files were made.
    """
    where = str(file)
    record = read_record(file, where)
    try:
        text = description_yaml(*figures_of(record, phase_of(record, phase, where), where))
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = f"{type(error).__name__}: {one_line(str(error))[:100]}"
        raise InputError(f"is not a record of a participant or of neurotier meter ({why})", where) from None
    try:
        parse(text, where)
    except SettingsError as error:
        raise InputError(f"cannot be described: {error.what}", error.where) from None
    return text


def read_record(file: Path, where: str) -> list[Any]:
    """The JSON values of a file, a single one or one per line.

    Raises
    ------
    InputError
        If it cannot be read as JSON.
    """
    with blaming(where):
        content = read_named(file, RECORD_BYTES, "a record")
    for parts in ([content], content.splitlines()):
        with suppress(ValueError, RecursionError):
            return [json.loads(part) for part in parts if part.strip()]
    raise InputError("is not JSON", where, "name a record or a file of neurotier meter --record")


def phase_of(values: Sequence[Any], phase: str | None, where: str) -> Record:
    """The phase to describe, with its flows under ``flows`` and its results under ``derivatives``."""
    if len(values) == 1 and "phases" in values[0]:
        record, wanted = values[0], phase or "compute"
        phases = {each["phase"]: each for each in record["phases"]}
        if wanted not in phases:
            raise InputError(
                f"has no phase {wanted!r}",
                where,
                f"use --phase with one of {', '.join(map(str, phases))}",
            )
        return {**phases[wanted], "flows": phases[wanted]["traffic"]}
    named = [value for value in values if phase in (None, value["phase"])]
    if not named:
        raise InputError(f"has no line of phase {phase!r}", where)
    return {**named[-1], "flows": named[-1]["tiers"]}


def figures_of(values: Sequence[Any], found: Record, where: str) -> tuple[str, dict[str, tuple[Any, str]]]:
    """What was run, and the figures with their sources, for one image."""
    record = values[0] if "phases" in values[0] else {}
    flows = [flow for flow in found["flows"] if flow["traffic_source"] == "growth" and "made_files" in flow]
    if not flows:
        raise InputError(
            "does not say how many files were made",
            where,
            "meter it with this version" + ("" if record else ", with --tier NAME=FOLDER of what it writes to"),
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
    """Number of a participant's images, as a description is about one. All images of an app count as one."""
    if "calls" in record or not record:
        return 1
    staged = [flow for phase in record["phases"] if phase["phase"] == "stage_in" for flow in phase["traffic"]]
    return max(1, *(int(flow["read_files"] or 0) for flow in staged))


def pairs_of(held: Held, images: int) -> list[list[int]]:
    """Numbers of files and bytes of each, with both sums kept, for one of several images.

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
    """Bytes that were read or written, and how they are known."""
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
