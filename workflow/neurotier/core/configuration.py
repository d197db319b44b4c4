"""The configuration as the user wrote it: its schema, its defaults, and an error of one sentence for each mistake.

``workflow/schemas/config.schema.yaml`` is the one place that defines which keys exist, and their defaults.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import cache
from pathlib import Path, PurePosixPath
from string import Formatter
from typing import TYPE_CHECKING, Any

from neurotier.core.errors import SettingsError
from neurotier.core.files import Facts, Record
from neurotier.core.installed import ROOT

if TYPE_CHECKING:  # the participant job reads checked settings: it needs neither validator nor YAML (0.02 s of CPU)
    from jsonschema.exceptions import ValidationError

SCHEMAS = ROOT / "workflow" / "schemas"

SHARED_ROLES, WRITTEN_ROLES = ("dataset", "results"), ("work", "images", "results")
"""Roles whose tier must be the same one for all jobs, and roles that are written to. Container images are kept with the
results; nodes may hold copies."""

NOT_IN_PATHS = r"[{}\n\r]|<[a-z][a-z0-9_]*>"
"""What no path may contain: placeholders that Snakemake would fill in, and line breaks."""

WORKLOADS = ("sweep", "daq", "ior", "staging")
"""Storage workloads: each is a section with ``tiers``, a target, a folder in the results, and a page of that name."""


def read_yaml(text: str) -> Any:
    """Parse one of our own YAML documents, with the C loader if there is one: Python's takes eight times as long."""
    import yaml

    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # both are safe


@cache
def config_schema() -> Record:
    """The schema of the configuration."""
    return dict(read_yaml((SCHEMAS / "config.schema.yaml").read_text()))


def with_defaults(value: Any, schema: Facts) -> Any:
    """A value of the configuration with the defaults of its schema for missing keys, at every depth.

    jsonschema does not fill in defaults. A section left empty in YAML (``tool:``) counts as missing. Values inside
    braces on the command line (``--config 'dataset={drop: true}'``) reach us as text; where the schema asks for another
    type, the text is read as YAML. A mapping is merged over a default that is not empty.
    """
    default = schema.get("default")
    if isinstance(value, Mapping) and isinstance(default, Mapping):
        value = {**default, **value}
    if "$ref" in schema:
        schema = config_schema()["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
    if isinstance(value, Mapping):
        known, others = schema.get("properties", {}), schema.get("additionalProperties") or {}
        given = {key: with_defaults(sub, known.get(key, others)) for key, sub in value.items()}
        return given | {
            key: with_defaults(sub["default"], sub)
            for key, sub in known.items()
            if "default" in sub and given.get(key) is None
        }
    if isinstance(value, list):
        return [with_defaults(item, schema.get("items", {})) for item in value]
    kinds = schema.get("type", "string")
    if isinstance(value, str) and "string" not in kinds:
        from yaml import YAMLError

        with suppress(YAMLError):  # validation reports it
            value = read_yaml(value)
    if isinstance(value, float) and value.is_integer() and "integer" in kinds:
        return int(value)  # to jsonschema it is one
    return None if "null" in kinds and value in ("", "null") else value


def require_valid(data: Any, schema: Record, where: str) -> None:
    """Raise :class:`SettingsError`, with ``where`` and the key of the worst fault, unless data satisfy a schema."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(schema).iter_errors(data))
    if error is not None:
        raise SettingsError(reason(error)[:300], f"{where} {key_path(error)}")


def check(config: Facts) -> None:
    """Raise :class:`SettingsError` unless ``config`` satisfies the schema and the tiers that it names are declared."""
    require_valid(config, config_schema(), "config key")
    placements = {"placement": config["placement"]}
    placements |= {f"campaign.placements.{name}": roles for name, roles in config["campaign"]["placements"].items()}
    named = [
        (f"{key}.{role}", tier) for key, roles in placements.items() for role, tier in roles.items() if tier is not None
    ]
    named += [(f"{key}.tiers", tier) for key in ("bigbrain", "probe", *WORKLOADS) for tier in config[key]["tiers"]]
    tiers = config["tiers"]
    for key, name in named:
        where, role = f"config key {key}", key.rpartition(".")[2]
        if name not in tiers:
            raise SettingsError(
                f"no tier is named {name!r}{suggestion(name, tiers)}",
                where,
                f"declare it under tiers, or use one of: {', '.join(tiers)}",
            )
        declared = tiers[name]
        if declared["node"] and role in SHARED_ROLES:
            raise SettingsError(
                f"tier {name!r} is each node's own (node: true), and all jobs must see the same {role}",
                where,
                "place it on a tier that all nodes share",
            )
        if declared["read_only"] and role in WRITTEN_ROLES:
            raise SettingsError(
                f"tier {name!r} is only read (read_only: true), and {role} is written",
                where,
                "place it on another tier",
            )
    if config["bigbrain"]["numa"] != "none" and "spark" in config["bigbrain"]["engines"]:
        raise SettingsError(
            "Spark's tasks cannot be pinned one by one, as forks of one JVM's daemon",
            "config key bigbrain.numa",
            "for spark set numa: none, start one worker of a standalone cluster per socket under numactl, and name"
            " its master in bigbrain.spark_master",
        )
    if taken := {"campaign", "published"}.intersection(config["comparison"]["results"]):
        raise SettingsError(
            f"{taken.pop()!r} is reserved there for runs of another kind",
            "config key comparison.results",
            "write ./ before the name",
        )
    check_app(config["app"])
    check_tools(config["tool"], config["campaign"]["tools"])
    if re.search(f"^-|{NOT_IN_PATHS}", config["results"]):
        raise SettingsError(
            "a path must not begin with a dash, or contain braces, <names> or line breaks", "config key results"
        )
    results = Path(config["results"])
    if results.is_absolute() or ".." in results.parts or not results.parts:
        raise SettingsError(
            f"{config['results']!r} is not the name of a folder below the results tier",
            "config key results",
            "name a folder, or give an absolute path",
        )


def check_tools(tool: Facts, compared: list[str]) -> None:
    """Check that the named tools exist, and that the commands of programs among them are valid."""
    tools = [name for name in tool if name != "name"]
    for key, name in [("tool.name", tool["name"]), *(("campaign.tools", name) for name in compared)]:
        if name not in tools:
            raise SettingsError(
                f"{name!r} is not one of {', '.join(tools)}",
                f"config key {key}",
                f"for a program of your own, give its command in tool.{name}.command",
            )
    for name in tools:
        if "command" in tool[name]:
            check_program(tool[name], f"tool.{name}")


def key_path(error: ValidationError) -> str:
    """The dotted path of the offending key, for example ``tiers.tmpfs.kind``."""
    path = [str(part) for part in error.absolute_path]
    if error.validator == "additionalProperties":
        path.append(unknown_key(error))
    elif error.validator == "required":
        path.append(next(str(key) for key in error.validator_value if key not in error.instance))
    return ".".join(path) or "(top level)"


def reason(error: ValidationError) -> str:
    """What is wrong with one key, in a sentence."""
    given, rule = error.instance, error.validator
    if rule == "additionalProperties":
        unknown = unknown_key(error)
        if ":" in unknown:
            return f"unknown key; write a space after the colon: {{{unknown.replace(':', ': ', 1)}}}"
        if "." in unknown:
            section, *keys = unknown.split(".")
            nested = "".join(f"{{{key}: " for key in keys) + "VALUE" + "}" * len(keys)
            return f"unknown key; on the command line write --config '{section}={nested}'"
        return f"unknown key{suggestion(unknown, list(error.schema['properties']))}"
    if rule == "required":
        return "this key is missing"
    if given is None:
        return "no value is given"
    if rule == "minProperties":
        return "nothing is declared; is config/config.yaml in the folder that you start in?"
    if rule == "enum":
        return f"{given!r} is not one of {', '.join(map(str, error.validator_value))}"
    if rule == "type" and "string" in error.validator_value and isinstance(given, int | float | date):
        return f"{given} was read as a {'date' if isinstance(given, date) else 'number'}; put it in quotes"
    if rule == "type" and isinstance(given, str):
        if given[:1] in ("{", "["):
            return f"{given!r} is not valid YAML; close every brace, bracket and quotation mark"
        first = next(iter(error.schema.get("properties", ())), "KEY")
        meant = {"object": f"{{{first}: {given}}}", "array": f"[{given}]"}
        if asked := meant.get(str(error.validator_value)):
            return f"{given!r} is a single value; write {asked}"
    return str(error.message)


def unknown_key(error: ValidationError) -> str:
    return next(str(key) for key in error.instance if key not in error.schema.get("properties", {}))


def suggestion(word: str, known: Collection[str]) -> str:
    """``"; did you mean 'x'?"`` if a known word is close, otherwise an empty text.

    >>> suggestion("tmpsf", ["tmpfs", "local"])
    "; did you mean 'tmpfs'?"
    """
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def expand(text: str, where: str) -> str:
    """Expand ``$VARIABLES`` and ``~``; an undefined variable is an error, not a literal ``$`` in a path."""
    expanded = os.path.expanduser(os.path.expandvars(text))
    if "$" in expanded:
        raise SettingsError(f"an environment variable in {text!r} is not defined", where, "define it")
    return expanded


# BIDS Apps and programs. Arguments are templates: ``--nprocs {threads}`` becomes ``--nprocs 4`` in a job with four
# cores. A literal brace is doubled.

BELOW = ("/data/", "/out/")
"""Paths below an app's dataset and output, where the engine would create a mount point for anything mounted there."""

TAKEN_PATHS = ("/data", "/out", "/work", "/tmp", "/var/tmp", "/.neurotier", "/filter.json")  # noqa: S108  # inside
"""Paths in the container that are taken."""

ALWAYS = ("threads", "mem_mb", "mem_gb", "work")
"""Placeholders known at every level of an app: cores, memory in MB and in whole GB, the work folder."""

OF_A_PROGRAM = ("input", "output", "threads")
"""Placeholders known in the command of a program: the image, a folder for its output, cores."""


def check_app(app: Facts) -> None:
    """Check what the schema cannot say of section ``app``.

    Raises
    ------
    SettingsError
        Naming the key, if an argument has an unknown placeholder, or a cache's path in the container is taken.
    """
    known = ["participant", *ALWAYS, *["session"] * (app["level"] == "session")]
    given = ["filter_file"] if app["filter_file"] else []
    used = check_templates(app["arguments"], [*known, *given], "app.arguments")
    check_templates(app["group_arguments"], [*ALWAYS, *given], "app.group_arguments")
    if app["filter_file"] and "filter_file" not in used:
        raise SettingsError(
            "no argument passes it to the app",
            "config key app.filter_file",
            "add its option to app.arguments: [--bids-filter-file, '{filter_file}']",
        )
    taken: dict[str, str] = {}
    for name, folder in app["caches"].items():
        inside, key = folder["inside"].rstrip("/"), f"config key app.caches.{name}.inside"
        if f"{inside}/".startswith(BELOW) or inside in TAKEN_PATHS or not inside:
            raise SettingsError(f"{folder['inside']!r} is taken", key, "name another folder")
        if inside in taken:
            raise SettingsError(f"{inside!r} is that of {taken[inside]}, too", key, "name another folder")
        taken[inside] = name


def check_program(program: Facts, key: str) -> None:
    """Check what the schema cannot say of a program.

    Raises
    ------
    SettingsError
        Naming the key, if the command is empty, has an unknown placeholder or lacks that of the image, or if the
        program does not write exactly one file, below its folder.
    """
    words = split_words(program["command"], f"{key}.command")
    if "input" not in check_templates(words, OF_A_PROGRAM, f"{key}.command"):
        raise SettingsError(
            "has no {input}",
            f"config key {key}.command",
            "say in it where the path of the image goes, and where that of the folder for what is written: {input}, "
            "{output}",
        )
    if program["version"]:
        split_words(program["version"], f"{key}.version")
    written = [(name, program[name]) for name in ("mask", "brain") if program[name]]
    if len(written) != 1:
        raise SettingsError(
            "both mask and brain are given" if written else "neither mask nor brain is given",
            f"config key {key}",
            "name the one file that the program writes",
        )
    [(name, file)] = written
    path = PurePosixPath(file)
    if path.is_absolute() or ".." in path.parts or "{" in file:
        raise SettingsError(
            f"{file!r} is not below {{output}}",
            f"config key {key}.{name}",
            "name a file in that folder, such as mask.nii.gz",
        )


def split_words(command: str, where: str) -> list[str]:
    """The words of a command, split as a shell would, without any expansion.

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
        raise SettingsError(f"{command!r}: {error}", f"config key {where}", "close it") from None
    if not words or ("/" in words[0] and not words[0].startswith("/")):
        raise SettingsError(
            f"{words[0]!r} is neither a name nor an absolute path" if words else "names no program",
            f"config key {where}",
            "begin with a program on PATH, or its absolute path",
        )
    return words


def check_templates(texts: Sequence[str], known: Collection[str], where: str) -> set[str]:
    """The placeholders used in some texts; each must be known.

    Raises
    ------
    SettingsError
        If a brace has no partner or encloses something other than a name, or if the name is unknown; the error lists
        those that are known.

    Examples
    --------
    >>> check_templates(["--mem={mem_gb}G", '{{"a": 1}}'], ALWAYS, "app.arguments")
    {'mem_gb'}
    """
    where, fix = f"config key {where}", "write {{ and }} for braces that are meant as such"
    used = set()
    for text in texts:
        try:
            parsed = list(Formatter().parse(text))
        except ValueError as error:
            raise SettingsError(f"{text!r}: {error}", where, fix) from None
        for _, name, form, conversion in parsed:
            if name is None:
                continue
            if form or conversion or not name.isidentifier():
                raise SettingsError(f"{text!r} has something other than a name in braces", where, fix)
            if name not in known:
                names = ", ".join(f"{{{one}}}" for one in known)
                raise SettingsError(
                    f"{text!r}: nothing is called {{{name}}} here",
                    where,
                    f"use one of {names}; write {{{{ for a brace",
                )
            used.add(name)
    return used
