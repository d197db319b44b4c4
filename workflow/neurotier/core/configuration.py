"""The configuration as written: its schema, its defaults, and a sentence for what is wrong with it.

``workflow/schemas/config.schema.yaml`` is the one place that defines which keys exist, and their defaults.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neurotier.core.app_settings import check_app, check_program
from neurotier.core.errors import SettingsError
from neurotier.core.installed import ROOT

if TYPE_CHECKING:  # the participant job reads checked settings: it loads no validator, and no YAML (0.02 s of CPU)
    from jsonschema.exceptions import ValidationError

SCHEMAS = ROOT / "workflow" / "schemas"

WORKLOADS = ("sweep", "daq", "ior", "staging")
"""Storage workloads: each is a section with ``tiers``, a target, a folder in the results, and a page of that name."""


def read_yaml(text: str) -> Any:
    """What a YAML document of ours says, by the reader in C where there is one: the other takes eight times as long."""
    import yaml

    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506  # both are safe


@cache
def config_schema() -> dict[str, Any]:
    """The schema of the configuration."""
    schema: dict[str, Any] = read_yaml((SCHEMAS / "config.schema.yaml").read_text())
    return schema


def completed(value: Any, schema: Mapping[str, Any]) -> Any:
    """A value of the configuration as its schema has it: a missing key has its default, at every depth.

    jsonschema does not fill in defaults. A section left empty in YAML (``tool:``) counts as missing. Values inside
    braces on the command line (``--config 'dataset={drop: true}'``) reach us as text; where the schema asks for another
    type, the text is read as YAML. A default that is not empty is laid under what is given.
    """
    if isinstance(value, Mapping):
        value = {**schema.get("default", {}), **value}
    if "$ref" in schema:
        schema = config_schema()["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
    if isinstance(value, Mapping):
        known, others = schema.get("properties", {}), schema.get("additionalProperties") or {}
        given = {key: completed(sub, known.get(key, others)) for key, sub in value.items()}
        missing = [key for key, sub in known.items() if "default" in sub and given.get(key) is None]
        return given | {key: completed(known[key]["default"], known[key]) for key in missing}
    if isinstance(value, list):
        return [completed(item, schema.get("items", {})) for item in value]
    kinds = schema.get("type", "string")
    if isinstance(value, str) and "string" not in kinds:
        return read_yaml(value)
    return None if "null" in kinds and value in ("", "null") else value


def check(config: Mapping[str, Any]) -> None:
    """Raise :class:`SettingsError` unless ``config`` satisfies the schema and the tiers that it names are declared."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(config_schema()).iter_errors(config))
    if error is not None:
        raise SettingsError(reason(error), where=f"config key {key_path(error)}")
    placements = {"placement": config["placement"]}
    placements |= {f"campaign.placements.{name}": roles for name, roles in config["campaign"]["placements"].items()}
    named = [(f"{key}.{role}", tier) for key, roles in placements.items() for role, tier in roles.items()]
    named += [(f"{key}.tiers", tier) for key in ("bigbrain", "probe", *WORKLOADS) for tier in config[key]["tiers"]]
    tiers = list(config["tiers"])
    for key, name in named:
        if name is not None and name not in tiers:
            raise SettingsError(
                f"no tier is named {name!r}{suggestion(name, tiers)}",
                where=f"config key {key}",
                fix=f"declare it under tiers, or use one of: {', '.join(tiers)}",
            )
    if config["bigbrain"]["numa"] != "none" and "spark" in config["bigbrain"]["engines"]:
        raise SettingsError(
            "Spark's tasks cannot be pinned one by one, as forks of one JVM's daemon",
            where="config key bigbrain.numa",
            fix="for spark set numa: none, start one worker of a standalone cluster per socket under numactl, and name"
            " its master in bigbrain.spark_master",
        )
    check_app(config["app"])
    check_tools(config["tool"], config["campaign"]["tools"])
    if any(c in config["results"] for c in "{}\n\r"):
        raise SettingsError("braces and line breaks cannot stand in a path here", where="config key results")
    results = Path(config["results"])
    if results.is_absolute() or ".." in results.parts or not results.parts:
        raise SettingsError(
            f"{config['results']!r} is not the name of a folder below the results tier",
            where="config key results",
            fix="name a folder, or give an absolute path",
        )


def check_tools(tool: Mapping[str, Any], compared: list[str]) -> None:
    """Check that the tools that are named are there, and the programs among them can be called."""
    tools = [name for name in tool if name != "name"]
    for key, name in [("tool.name", tool["name"]), *(("campaign.tools", name) for name in compared)]:
        if name not in tools:
            raise SettingsError(
                f"{name!r} is not one of {', '.join(tools)}{suggestion(name, tools)}",
                where=f"config key {key}",
                fix=f"give the command of a program of yours in tool.{name}.command",
            )
    for name in tools:
        if "command" in tool[name]:
            check_program(tool[name], f"tool.{name}")


def key_path(error: ValidationError) -> str:
    """The dotted path of the offending key, for example ``tiers.tmpfs.kind``."""
    path = [str(part) for part in error.absolute_path]
    if error.validator == "additionalProperties":
        path.append(unknown_keys(error)[0])
    elif error.validator == "required":
        path.append(next(str(key) for key in error.validator_value if key not in error.instance))
    return ".".join(path) or "(top level)"


def reason(error: ValidationError) -> str:
    """What is wrong with one key, in a sentence."""
    if error.validator == "additionalProperties":
        unknown = unknown_keys(error)[0]
        if "." in unknown:
            section, *keys = unknown.split(".")
            nested = "".join(f"{{{key}: " for key in keys) + "VALUE" + "}" * len(keys)
            return f"unknown key; on the command line write --config '{section}={nested}'"
        if ":" in unknown:
            return f"unknown key; write a space after the colon: {{{unknown.replace(':', ': ')}}}"
        return f"unknown key{suggestion(unknown, list(error.schema['properties']))}"
    if error.validator == "required":
        return "this key is missing"
    if error.validator == "enum":
        return f"{error.instance!r} is not one of {', '.join(error.validator_value)}"
    if error.validator == "type" and error.validator_value == "string" and isinstance(error.instance, int):
        return f"{error.instance!r} was read as a number; put it in quotes"
    return str(error.message)


def unknown_keys(error: ValidationError) -> list[str]:
    return [str(key) for key in error.instance if key not in error.schema.get("properties", {})]


def suggestion(word: str, known: list[str]) -> str:
    """``"; did you mean 'x'?"`` when a known word is close, else nothing.

    >>> suggestion("tmpsf", ["tmpfs", "local"])
    "; did you mean 'tmpfs'?"
    """
    import difflib

    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def expand(text: str, where: str) -> str:
    """Expand ``$VARIABLES`` and ``~``; an undefined variable is an error, not a literal ``$`` in a path."""
    expanded = os.path.expanduser(os.path.expandvars(text))
    if "$" in expanded:
        raise SettingsError(f"an environment variable in {text!r} is not defined", where=where, fix="define it")
    return expanded
