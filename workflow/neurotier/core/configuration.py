"""The configuration as written: its schema, its defaults, and a sentence for what is wrong with it.

``workflow/schemas/config.schema.yaml`` is the one place that defines which keys exist, and their defaults.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neurotier.core.app_settings import check_app
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


def with_defaults(config: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``config`` in which every missing key has the schema's default, at every depth.

    jsonschema does not fill in defaults. A section left empty in YAML (``tool:``) counts as missing.
    """
    complete = copy.deepcopy(dict(config))
    for key, sub in schema.get("properties", {}).items():
        if complete.get(key) is None and "default" in sub:
            complete[key] = copy.deepcopy(sub["default"])
        if isinstance(complete.get(key), Mapping):
            complete[key] = with_defaults(complete[key], sub)
            each = sub.get("additionalProperties")
            if isinstance(each, Mapping):
                complete[key] = {
                    name: with_defaults(value, each) if isinstance(value, Mapping) else value
                    for name, value in complete[key].items()
                }
    return complete


def read_scalars(value: Any, schema: Mapping[str, Any]) -> Any:
    """Read numbers and booleans that arrived as text.

    Values inside braces on the command line (``--config 'dataset={drop: true}'``) reach us as text; where the schema
    asks for another type, the text is read as YAML.
    """
    if "$ref" in schema:
        schema = config_schema()["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
    if isinstance(value, Mapping):
        known, others = schema.get("properties", {}), schema.get("additionalProperties") or {}
        return {key: read_scalars(sub, known.get(key, others)) for key, sub in value.items()}
    if isinstance(value, list):
        return [read_scalars(item, schema.get("items", {})) for item in value]
    kinds = schema.get("type", "string")
    if isinstance(value, str) and "string" not in kinds:
        import yaml

        return yaml.safe_load(value)
    return None if "null" in kinds and value in ("", "null") else value


def check(config: Mapping[str, Any]) -> None:
    """Raise :class:`SettingsError` unless ``config`` satisfies the schema and the tiers that it names are declared."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(config_schema()).iter_errors(config))
    if error is not None:
        raise SettingsError(reason(error), where=f"config key {key_path(error)}")
    check_placement(config["placement"], list(config["tiers"]), "placement")
    for name, placement in config["campaign"]["placements"].items():
        check_placement(placement, list(config["tiers"]), f"campaign.placements.{name}")
    for section in ("bigbrain", "probe", *WORKLOADS):
        for name in config[section]["tiers"]:
            check_tier(name, list(config["tiers"]), f"{section}.tiers")
    if config["bigbrain"]["numa"] != "none" and "spark" in config["bigbrain"]["engines"]:
        raise SettingsError(
            "Spark's tasks cannot be pinned one by one, as forks of one JVM's daemon",
            where="config key bigbrain.numa",
            fix="for spark set numa: none, start one worker of a standalone cluster per socket under numactl, and name"
            " its master in bigbrain.spark_master",
        )
    check_app(config["app"])
    if any(c in config["results"] for c in "{}\n\r"):
        raise SettingsError("braces and line breaks cannot stand in a path here", where="config key results")
    results = Path(config["results"])
    if results.is_absolute() or ".." in results.parts or not results.parts:
        raise SettingsError(
            f"{config['results']!r} is not the name of a folder below the results tier",
            where="config key results",
            fix="name a folder, or give an absolute path",
        )


def check_placement(placement: Mapping[str, str | None], tiers: list[str], key: str) -> None:
    """Raise :class:`SettingsError` if a role is placed on a tier that is not declared."""
    for role, tier in placement.items():
        if tier is not None:
            check_tier(tier, tiers, f"{key}.{role}")


def check_tier(name: str, tiers: list[str], key: str) -> None:
    """Raise :class:`SettingsError` if a tier is not declared."""
    if name not in tiers:
        raise SettingsError(
            f"no tier is named {name!r}{suggestion(name, tiers)}",
            where=f"config key {key}",
            fix=f"declare it under tiers, or use one of: {', '.join(tiers)}",
        )


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
