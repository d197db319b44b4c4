"""Settings of BIDS Apps: section ``app`` of the configuration, and what the schema cannot say of it.

Arguments are templates: ``--nprocs {threads}`` says what the job has, whatever that is today; a participant on four
cores is told four. A brace that is meant as such is doubled.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, dataclass_transform

from neurotier.core.errors import SettingsError

OF_THE_APP = ("/data", "/out", "/work", "/tmp", "/var/tmp", "/.neurotier", "/filter.json")  # noqa: S108  # inside
"""Places in the container that are taken."""


ALWAYS = ("threads", "mem_mb", "mem_gb", "work")
"""Names that every level of an app knows: cores, memory in MB and in whole GB, the work folder."""


@dataclass_transform(frozen_default=True)
class Section:
    """A section of the configuration: subclasses are frozen dataclasses of its keys."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


class CacheSettings(TypedDict):
    """One entry of ``app.caches``: a folder that apps read, such as TemplateFlow's."""

    source: str
    inside: str
    variable: str | None


class AppSettings(Section):
    """Section ``app``: a BIDS App to run instead of a tool."""

    image: str | None
    name: str | None
    level: str
    suffixes: list[str]
    arguments: list[str]
    label_option: str
    session_option: str | None
    work_option: str | None
    filter_file: str | None
    group: bool
    group_arguments: list[str]
    threads: int
    memory_mb: int
    work_factor: float
    work_files: int | None
    caches: dict[str, CacheSettings]
    retry_exit_codes: list[int]
    attempts: int

    @property
    def of_group(self) -> list[str] | None:
        """Arguments of the group level; ``None`` without one."""
        return self.group_arguments if self.group else None

    @property
    def cache_sources(self) -> dict[str, str]:
        """Folders that the app reads by name: when others are named, they are placed anew."""
        return {name: cache["source"] for name, cache in sorted(self.caches.items())}


def check_app(app: Mapping[str, Any]) -> None:
    """Check what the schema cannot say of section ``app``.

    Raises
    ------
    SettingsError
        With the key, if an argument asks for what nobody knows, or two things have one place in the container.
    """
    known = ["participant", *ALWAYS, *["session"] * (app["level"] == "session")]
    given = ["filter_file"] if app["filter_file"] else []
    used = check_templates(app["arguments"], [*known, *given], "app.arguments")
    check_templates(app["group_arguments"], [*ALWAYS, *given], "app.group_arguments")
    if app["filter_file"] and "filter_file" not in used:
        raise SettingsError(
            "the app is not told of it",
            where="config key app.filter_file",
            fix="add its option to app.arguments: [--bids-filter-file, '{filter_file}']",
        )
    taken: dict[str, str] = {}
    for name, cache in app["caches"].items():
        inside, key = cache["inside"].rstrip("/"), f"config key app.caches.{name}.inside"
        if inside in OF_THE_APP or not inside:
            raise SettingsError(f"{cache['inside']!r} is taken", where=key, fix="name another folder")
        if inside in taken:
            raise SettingsError(f"{inside!r} is that of {taken[inside]}, too", where=key, fix="name another folder")
        taken[inside] = name


def check_templates(texts: Sequence[str], known: Collection[str], where: str) -> set[str]:
    """Names in the braces of some texts, each of which must be known.

    Raises
    ------
    SettingsError
        If a brace stands alone, there is anything but a name between two, or one is not known, with the names there
        are.

    Examples
    --------
    >>> check_templates(["--mem={mem_gb}G", '{{"a": 1}}'], ALWAYS, "app.arguments")
    {'mem_gb'}
    """
    from string import Formatter

    where, fix, used = f"config key {where}", "write {{ and }} for braces that are meant as such", set[str]()
    for text in texts:
        try:
            parsed = list(Formatter().parse(text))
        except ValueError as error:
            raise SettingsError(f"{text!r}: {error}", where=where, fix=fix) from None
        for _, name, form, conversion in parsed:
            if name is None:
                continue
            if form or conversion or not name.isidentifier():
                raise SettingsError(f"{text!r} has something other than a name in braces", where=where, fix=fix)
            if name not in known:
                names = ", ".join(f"{{{one}}}" for one in known)
                fix = f"use one of {names}; write {{{{ for a brace"
                raise SettingsError(f"{text!r}: nothing is called {{{name}}} here", where=where, fix=fix)
            used.add(name)
    return used
