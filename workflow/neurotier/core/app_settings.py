"""Settings of BIDS Apps and of programs: section ``app`` of the configuration, entries of section ``tool`` that have a
command, and what the schema cannot say of them.

Arguments are templates: ``--nprocs {threads}`` says what the job has, whatever that is today; a participant on four
cores is told four. A brace that is meant as such is doubled.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, TypedDict, dataclass_transform

from neurotier.core.errors import SettingsError

OF_THE_APP = ("/data", "/out", "/work", "/tmp", "/var/tmp", "/.neurotier", "/filter.json")  # noqa: S108  # inside
"""Places in the container that are taken."""


ALWAYS = ("threads", "mem_mb", "mem_gb", "work")
"""Names that every level of an app knows: cores, memory in MB and in whole GB, the work folder."""


OF_A_PROGRAM = ("input", "output", "threads")
"""Names that the command of a program knows: the image, a folder for what it writes, cores."""


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


class ProgramSettings(Section):
    """An entry of section ``tool`` that has a command: a program that extracts the brain of one image."""

    command: str
    mask: str | None
    brain: str | None
    version: str | None
    environment: dict[str, str]
    threads: int
    memory_mb: int
    work_factor: float


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


def check_program(program: Mapping[str, Any], key: str) -> None:
    """Check what the schema cannot say of a program.

    Raises
    ------
    SettingsError
        With the key, if there is no command, it asks for what nobody knows, or not for the image; or if the program
        does not write one thing, below its folder.
    """
    words = split_words(program["command"], f"{key}.command")
    if "input" not in check_templates(words, OF_A_PROGRAM, f"{key}.command"):
        fix = "say in it where the path of the image goes, and where that of the folder for what is written"
        raise SettingsError("has no {input}", where=f"config key {key}.command", fix=f"{fix}: {{input}}, {{output}}")
    if program["version"]:
        split_words(program["version"], f"{key}.version")
    written = [(name, program[name]) for name in ("mask", "brain") if program[name]]
    if len(written) != 1:
        problem = "both mask and brain are given" if written else "neither mask nor brain is given"
        raise SettingsError(problem, where=f"config key {key}", fix="name the one file that the program writes")
    [(name, file)] = written
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or "{" in file:
        fix = "name a file in that folder, such as mask.nii.gz"
        raise SettingsError(f"{file!r} is not below {{output}}", where=f"config key {key}.{name}", fix=fix)


def split_words(command: str, where: str) -> list[str]:
    """The words of a command, as a shell would split it that expands nothing.

    Raises
    ------
    SettingsError
        If a quotation has no end, or the first word is neither the name of a program nor its absolute path.

    Examples
    --------
    >>> split_words("bet {input} 'a b'; $HOME", "tool.bet.command")
    ['bet', '{input}', 'a b;', '$HOME']
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise SettingsError(f"{command!r}: {error}", where=f"config key {where}", fix="close it") from None
    if not words or ("/" in words[0] and not words[0].startswith("/")):
        said = f"{words[0]!r} is neither a name nor an absolute path" if words else "names no program"
        raise SettingsError(said, where=f"config key {where}", fix="begin with a program on PATH, or its absolute path")
    return words


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
