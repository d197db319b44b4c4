"""Settings: the configuration checked against its schema, filled with defaults, and given types.

``workflow/schemas/config.schema.yaml`` is the one place that says which keys exist; the dataclasses here mirror
its sections (a test holds them together), so that the rest of the library has names instead of dictionaries.
"""

from __future__ import annotations

import copy
import difflib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from neurotier.errors import SettingsError

if TYPE_CHECKING:  # the participant job reads checked settings and need not load a validator
    from jsonschema.exceptions import ValidationError

SCHEMAS = Path(__file__).resolve().parent.parent / "schemas"
ROLES = ("dataset", "work", "images", "results")


@dataclass(frozen=True)
class DatasetSettings:
    """Section ``dataset``: what to analyse."""

    source: str
    version: str | None
    sites: list[str]
    participants: list[str]
    sessions: list[str]
    runs: list[str | int]
    concurrent_gets: int
    get_attempts: int
    get_backoff_s: float
    drop: bool
    validation: str


@dataclass(frozen=True)
class DemoSettings:
    """Section ``demo``: the demonstration dataset."""

    head: str | None
    voxel_size_mm: float
    seed: int


@dataclass(frozen=True)
class ToolSettings:
    """Section ``tool``: the tool's name, its container image, and the options of that tool alone."""

    name: str
    image: str | None
    options: dict[str, Any]


@dataclass(frozen=True)
class AppSettings:
    """Section ``app``: a BIDS App to run instead of a tool."""

    image: str | None
    name: str | None
    suffixes: list[str]
    arguments: list[str]
    label_option: str
    work_option: str | None
    group: bool
    group_arguments: list[str]
    threads: int
    memory_mb: int
    work_factor: float


@dataclass(frozen=True)
class ContainerSettings:
    """Section ``containers``: how containers are run."""

    form: str
    network: bool
    environment: dict[str, str]
    binds: list[str]
    build_arguments: dict[str, str]


@dataclass(frozen=True)
class TierSettings:
    """One entry of section ``tiers``."""

    name: str
    path: str
    kind: str
    capacity: str | int | None
    node: bool = False


@dataclass(frozen=True)
class ReportSettings:
    """Section ``report``: how much the run report shows."""

    mosaics: int


@dataclass(frozen=True)
class CampaignSettings:
    """Section ``campaign``: conditions to run; a placement maps roles to tiers, or to ``None`` for the usual one."""

    placements: dict[str, dict[str, str | None]]
    parallelism: list[int]
    cache: list[str]
    tools: list[str]
    repetitions: int
    seed: int
    compare_outputs: bool
    repeat_invalid: bool
    keep_outputs: bool


@dataclass(frozen=True)
class ComparisonSettings:
    """Section ``comparison``: what else is compared."""

    results: list[str]
    published: str | None


@dataclass(frozen=True)
class Settings:
    """The whole configuration, valid and complete; and whether Snakemake was told to use containers."""

    dataset: DatasetSettings
    demo: DemoSettings
    tool: ToolSettings
    app: AppSettings
    containers: ContainerSettings
    tiers: dict[str, TierSettings]
    placement: dict[str, str]
    results: str
    participants_per_job: int
    report: ReportSettings
    campaign: CampaignSettings
    comparison: ComparisonSettings
    in_containers: bool = False

    @property
    def image(self) -> str | None:
        """The container image in use; ``None`` on the host."""
        return (self.app.image or self.tool.image) if self.in_containers else None

    @classmethod
    def from_config(cls, config: Mapping[str, Any], in_containers: bool = False) -> Settings:
        """Check a configuration and give it types.

        Raises
        ------
        SettingsError
            With the path of the key and the reason, if the configuration is not valid.

        Examples
        --------
        >>> tiers = {"disk": {"path": ".", "kind": "block"}}
        >>> placement = {"dataset": "disk", "work": "disk", "images": "disk", "results": "disk"}
        >>> Settings.from_config({"tiers": tiers, "placement": placement}).tool.name
        'brainextractor'
        >>> Settings.from_config({"tiers": tiers, "placement": {**placement, "work": "dsik"}})
        Traceback (most recent call last):
        ...
        neurotier.errors.SettingsError: ...
        """
        complete = with_defaults(read_scalars(config, config_schema()), config_schema())
        check(complete)
        if complete["app"]["image"] and not in_containers:
            raise SettingsError(
                "a BIDS App runs in a container", where="config key app.image", fix="add --sdm apptainer"
            )
        name, options = complete["tool"]["name"], dict(complete["tool"][complete["tool"]["name"]])
        return cls(
            dataset=DatasetSettings(**complete["dataset"]),
            demo=DemoSettings(**complete["demo"]),
            tool=ToolSettings(name, options.pop("image"), options),
            app=AppSettings(**complete["app"]),
            containers=ContainerSettings(**complete["containers"]),
            tiers={name: TierSettings(name, **tier) for name, tier in complete["tiers"].items()},
            placement=dict(complete["placement"]),
            results=complete["results"],
            participants_per_job=complete["participants_per_job"],
            report=ReportSettings(**complete["report"]),
            campaign=CampaignSettings(**complete["campaign"]),
            comparison=ComparisonSettings(**complete["comparison"]),
            in_containers=in_containers,
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Settings:
        """Rebuild settings from what :meth:`to_json` gave."""
        return cls(
            dataset=DatasetSettings(**data["dataset"]),
            demo=DemoSettings(**data["demo"]),
            tool=ToolSettings(**data["tool"]),
            app=AppSettings(**data["app"]),
            containers=ContainerSettings(**data["containers"]),
            tiers={name: TierSettings(**tier) for name, tier in data["tiers"].items()},
            placement=data["placement"],
            results=data["results"],
            participants_per_job=data["participants_per_job"],
            report=ReportSettings(**data["report"]),
            campaign=CampaignSettings(**data["campaign"]),
            comparison=ComparisonSettings(**data["comparison"]),
            in_containers=data["in_containers"],
        )

    def to_json(self) -> dict[str, Any]:
        """The settings as plain values."""
        return asdict(self)


@cache
def config_schema() -> dict[str, Any]:
    """The schema of the configuration."""
    schema: dict[str, Any] = yaml.safe_load((SCHEMAS / "config.schema.yaml").read_text())
    return schema


def with_defaults(config: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of ``config`` in which every missing key has the schema's default, at every depth.

    jsonschema leaves defaults to its users; a section left empty in YAML (``tool:``) counts as missing.
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

    Snakemake reads what stands inside braces on the command line (``--config 'dataset={drop: true}'``) as text
    only; where the schema asks for something else, the text is read as YAML.
    """
    if "$ref" in schema:
        schema = config_schema()["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
    if isinstance(value, Mapping):
        return {key: read_scalars(sub, schema.get("properties", {}).get(key, {})) for key, sub in value.items()}
    if isinstance(value, list):
        return [read_scalars(item, schema.get("items", {})) for item in value]
    kinds = schema.get("type", "string")
    if isinstance(value, str) and "string" not in kinds:
        return yaml.safe_load(value)
    return None if "null" in kinds and value in ("", "null") else value


def check(config: Mapping[str, Any]) -> None:
    """Raise :class:`SettingsError` unless ``config`` satisfies the schema and its names refer to something."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(config_schema()).iter_errors(config))
    if error is not None:
        raise SettingsError(reason(error), where=f"config key {key_path(error)}")
    check_placement(config["placement"], list(config["tiers"]), "placement")
    for name, placement in config["campaign"]["placements"].items():
        check_placement(placement, list(config["tiers"]), f"campaign.placements.{name}")
    if any(c in config["results"] for c in "{}\n\r"):
        raise SettingsError("braces and line breaks cannot stand in a path here", where="config key results")
    results = Path(config["results"])
    if results.is_absolute() or ".." in results.parts or not results.parts:
        raise SettingsError(
            f"{config['results']!r} is not the name of a folder below the results tier",
            where="config key results",
            fix="name a folder; for another place, declare a tier and set placement.results",
        )


def check_placement(placement: Mapping[str, str | None], tiers: list[str], key: str) -> None:
    """Raise :class:`SettingsError` if a role is placed on a tier that is not declared."""
    for role, tier in placement.items():
        if tier is not None and tier not in tiers:
            raise SettingsError(
                f"no tier is named {tier!r}{suggestion(tier, tiers)}",
                where=f"config key {key}.{role}",
                fix=f"declare it under tiers, or use one of: {', '.join(tiers)}",
            )


def key_path(error: ValidationError) -> str:
    """The dotted path of the offending key, for example ``tiers.tmpfs.kind``."""
    path = [str(part) for part in error.absolute_path]
    if error.validator == "additionalProperties":
        path.append(unknown_keys(error)[0])
    elif error.validator == "required":
        path.append(missing_keys(error)[0])
    return ".".join(path) or "(top level)"


def reason(error: ValidationError) -> str:
    """A sentence on what is wrong with one key."""
    if error.validator == "additionalProperties":
        unknown = unknown_keys(error)[0]
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


def missing_keys(error: ValidationError) -> list[str]:
    return [str(key) for key in error.validator_value if key not in error.instance]


def suggestion(word: str, known: list[str]) -> str:
    """``"; did you mean 'x'?"`` when a known word is close, else nothing.

    >>> suggestion("tmpsf", ["tmpfs", "local"])
    "; did you mean 'tmpfs'?"
    """
    close = difflib.get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def expand(text: str, where: str) -> str:
    """Expand ``$VARIABLES`` and ``~``; an undefined variable is an error, not a literal ``$`` in a path."""
    expanded = os.path.expanduser(os.path.expandvars(text))
    if "$" in expanded:
        raise SettingsError(f"an environment variable in {text!r} is not defined", where=where, fix="define it")
    return expanded
