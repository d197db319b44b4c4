"""Descriptions of what a pipeline does to storage and processors, as YAML; the schema is ``rehearsal.schema.yaml``.

A description may come from anybody, so it is read as data from outside: a regular file of some size, without anchors
(of which a few lines can stand for gigabytes), nested no deeper than the schema is, and with every figure in bounds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from neurotier.core.errors import SettingsError
from neurotier.core.foreign import blaming, read_named

PROFILES = Path(__file__).with_name("profiles")

LIMIT_BYTES = 64 << 10
"""Largest description."""

DEEPEST = 6
"""Deepest nesting of one."""

PORTIONS = 100
"""Most portions that the work is divided into."""

FILES_OF_A_PORTION, SECONDS_OF_A_PORTION = 100, 0.02
"""About what a portion has at least."""

BLOCK_BYTES = 4096
"""What a file system gives a file at a time, as a rule: a small file takes one block."""

WHERE = "config key tool.rehearsal.profile"

Pairs = tuple[tuple[int, int], ...]
"""How many files, and bytes of each."""


@dataclass(frozen=True)
class Description:
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
        """Files that are made in the work folder, results not counted."""
        return sum(count for count, _ in self.files)

    @property
    def made_bytes(self) -> int:
        """Their bytes."""
        return sum(count * each for count, each in self.files)

    @property
    def portions(self) -> int:
        """How many portions the work is divided into, so that files and computing take turns."""
        return max(1, min(PORTIONS, max(self.made_files // FILES_OF_A_PORTION, int(self.cpu_s / SECONDS_OF_A_PORTION))))

    @property
    def peak_files(self) -> int:
        """Most files that are there at once: those that are removed go portion by portion, after others were made."""
        in_a_portion = -(-self.made_files // self.portions) + len(self.files)
        return min(self.made_files, self.made_files - self.removed_files + in_a_portion)

    @property
    def peak_bytes(self) -> int:
        """Room that these take at most, bytes: the oldest are removed first, and any may be the largest."""
        left, room_bytes = self.peak_files, 0
        for count, each in sorted(self.files, key=lambda pair: -pair[1]):
            room_bytes += in_blocks(((min(count, left), each),))
            left -= min(count, left)
        return room_bytes

    @property
    def result_bytes(self) -> int:
        """Their bytes."""
        return sum(count * each for count, each in self.results)

    def scaled(self, factor: float) -> Description:
        """The same with so many times the files, bytes and CPU time, by the same threads in as much memory."""

        files = scaled_pairs(self.files, factor)
        names = ("folders", "removed_files", "read_bytes", "read_files", "written_bytes")
        scaled = {name: round(getattr(self, name) * factor) for name in names}
        for name in ("folders", "removed_files"):
            scaled[name] = min(scaled[name], sum(count for count, _ in files))
        results = scaled_pairs(self.results, factor)
        return replace(self, files=files, results=results, cpu_s=self.cpu_s * factor, **scaled)


def scaled_pairs(pairs: Pairs, factor: float) -> Pairs:
    """So many times the files; where that is less than one, one that has their bytes.

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


def known_profiles() -> list[str]:
    """Names of the descriptions that come with neurotier."""
    return sorted(file.stem for file in PROFILES.glob("*.yaml"))


def read_description(profile: str) -> Description:
    """A description: one that comes with neurotier by its name, or any by its path.

    Raises
    ------
    SettingsError
        If there is none of this name, or it cannot be read; with the figure and what is wrong with it.
    """
    return parse(*read_text(profile))


def read_text(profile: str) -> tuple[str, str]:
    """The text of a description, and what to call it in an error; errors as of :func:`read_description`."""
    file = PROFILES / f"{profile}.yaml"
    if "/" in profile or profile.endswith((".yaml", ".yml")):
        file = Path(profile).expanduser()
    elif not file.exists():
        known = ", ".join(known_profiles())
        fix = f"use one of {known}, or write a path that ends with .yaml"
        raise SettingsError(f"no description is named {profile!r}", where=WHERE, fix=fix)
    where = f"{WHERE}: {file}"
    try:
        with blaming(where, SettingsError):
            return read_named(file, LIMIT_BYTES, "a description").decode(), where
    except UnicodeDecodeError:
        raise SettingsError("is no text", where=where) from None


def parse(text: str, where: str) -> Description:
    """A description from its text; errors name ``where``, and are as of :func:`read_description`."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    from neurotier.core.configuration import SCHEMAS, key_path, read_yaml, reason

    data = load(text, where)
    schema = read_yaml((SCHEMAS / "rehearsal.schema.yaml").read_text())
    error = best_match(Draft202012Validator(schema).iter_errors(data))
    if error is not None:
        raise SettingsError(reason(error)[:300], where=f"{where}: {key_path(error)}")
    values = {name: figure["value"] for name, figure in data["figures"].items()}
    if not math.isfinite(values["cpu_s"]):
        raise SettingsError("is no number of seconds", where=f"{where}: figures.cpu_s")
    for name in ("files", "results"):
        values[name] = tuple((int(count), int(each)) for count, each in values[name] if count)
    whole = {name: int(value) for name, value in values.items() if isinstance(value, float) and name != "cpu_s"}
    description = Description(**values | whole)
    for name in ("removed_files", "folders"):
        if values[name] > description.made_files:
            raise SettingsError(f"are more than the {description.made_files:,} files", f"{where}: figures.{name}")
    return description


def load(text: str, where: str) -> Any:
    """The data of a YAML document that has no anchors and is not nested deeply.

    Raises
    ------
    SettingsError
        If it has, or is no YAML.
    """
    import yaml

    depth = 0
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.events.CollectionStartEvent)
            depth -= isinstance(event, yaml.events.CollectionEndEvent)
            if isinstance(event, yaml.events.AliasEvent):
                raise SettingsError("has references (*name), which no description needs", where=where)
            if depth > DEEPEST:
                raise SettingsError("is nested more deeply than a description", where=where)
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        what, mark = getattr(error, "problem", None) or type(error).__name__, getattr(error, "problem_mark", None)
        place = f", line {mark.line + 1}" if mark else ""
        raise SettingsError(f"is no YAML that can be read: {what}{place}", where=where) from None


def written(about: str, figures: Mapping[str, tuple[Any, str]]) -> str:
    """A description as YAML; figures are pairs of value and source."""
    import yaml

    named = {name: {"value": value, "source": source} for name, (value, source) in figures.items()}
    return yaml.safe_dump({"about": about, "figures": named}, sort_keys=False, allow_unicode=True, width=110)
