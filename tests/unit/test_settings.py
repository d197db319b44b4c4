"""Settings: schema, types, defaults and documentation say the same."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from neurotier.analysis.tools import TOOLS
from neurotier.core import settings as settings_module
from neurotier.core.configuration import SCHEMAS, config_schema
from neurotier.core.errors import SettingsError
from neurotier.core.settings import Settings
from neurotier.run.profile_config import merge
from support import ROOT

TIERS = {"disk": {"path": ".", "kind": "block"}}
PLACEMENT = dict.fromkeys(("dataset", "work", "images", "results"), "disk")
SMALLEST: dict[str, Any] = {"tiers": TIERS, "placement": PLACEMENT}


def documented_keys(schema: dict[str, Any], prefix: str = "") -> dict[str, dict[str, Any]]:
    """Dotted path to schema of every key that is not a section."""
    found: dict[str, dict[str, Any]] = {}
    for name, sub in schema["properties"].items():
        path = f"{prefix}{name}"
        if "properties" in sub:
            found |= documented_keys(sub, f"{path}.")
        elif "properties" in (sub.get("additionalProperties") or {}):
            found |= documented_keys(sub["additionalProperties"], f"{path}.NAME.")
        else:
            found[path] = sub
    return found


def test_every_schema_is_a_schema() -> None:
    for file in SCHEMAS.glob("*.yaml"):
        Draft202012Validator.check_schema(yaml.safe_load(file.read_text()))


@pytest.mark.parametrize(
    ("section", "types"),
    [
        ("dataset", settings_module.DatasetSettings),
        ("demo", settings_module.DemoSettings),
        ("app", settings_module.AppSettings),
        ("containers", settings_module.ContainerSettings),
        ("validity", settings_module.ValiditySettings),
        ("report", settings_module.ReportSettings),
        ("campaign", settings_module.CampaignSettings),
        ("comparison", settings_module.ComparisonSettings),
        ("probe", settings_module.ProbeSettings),
        ("sweep", settings_module.SweepSettings),
        ("daq", settings_module.DaqSettings),
        ("ior", settings_module.IorSettings),
        ("staging", settings_module.StagingSettings),
        ("bigbrain", settings_module.BigBrainSettings),
    ],
)
def test_types_have_the_keys_of_the_schema(section: str, types: type) -> None:
    assert [field.name for field in dataclasses.fields(types)] == list(
        config_schema()["properties"][section]["properties"]
    )


def test_tools_have_the_options_of_the_schema() -> None:
    tool = config_schema()["properties"]["tool"]["properties"]
    assert sorted(tool["name"]["enum"]) == sorted(TOOLS)
    for name, kind in TOOLS.items():
        options = [field.name for field in dataclasses.fields(kind) if field.name != "name"]
        assert [*options, "image"] == list(tool[name]["properties"])


def test_documentation_has_every_key_with_its_default() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (.+?) \| (.+) \|$", (ROOT / "config" / "README.md").read_text(), re.MULTILINE)
    documented = {key: (default, text) for key, default, text in rows}
    expected = documented_keys(config_schema())
    assert list(documented) == list(expected)
    for key, sub in expected.items():
        default = f"`{json.dumps(sub['default'])}`" if "default" in sub else "required"
        assert documented[key] == (default, sub["description"].strip()), key


def test_smallest_configuration_is_complete() -> None:
    settings = Settings.from_config(SMALLEST)
    assert settings.dataset.source == "demo"
    assert settings.tool.options == {"fractional_threshold": 0.5, "iterations": 1000}
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


def test_numbers_in_braces_on_the_command_line_are_read() -> None:
    given = {"dataset": {"drop": "true", "version": "2"}, "tool": {"brainextractor": {"fractional_threshold": "0.4"}}}
    settings = Settings.from_config({**SMALLEST, **given})
    assert (settings.dataset.drop, settings.dataset.version) == (True, "2")
    assert settings.tool.options["fractional_threshold"] == 0.4
    campaign = {"parallelism": ["2", "96"], "repetitions": "1"}
    settings = Settings.from_config({**SMALLEST, "campaign": campaign, "dataset": {"participants": ["0025427"]}})
    assert (settings.campaign.parallelism, settings.campaign.repetitions) == ([2, 96], 1)
    assert settings.dataset.participants == ["0025427"]


def test_empty_section_takes_its_defaults() -> None:
    assert Settings.from_config({**SMALLEST, "tool": None}).tool.name == "brainextractor"


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ({"placement": PLACEMENT}, "config key tiers: this key is missing"),
        ({**SMALLEST, "results": "../elsewhere"}, "config key results: '../elsewhere' is not the name of a folder"),
        ({**SMALLEST, "results": "a{b}"}, "config key results: braces"),
        ({**SMALLEST, "tool": {"bet": {"fractional_threshold": 2}}}, "config key tool.bet.fractional_threshold: 2 is"),
        (
            {**SMALLEST, "campaign": {"placements": {"slow": {"work": "dsik"}}}},
            "config key campaign.placements.slow.work: no tier is named 'dsik'; did you mean 'disk'?",
        ),
        ({**SMALLEST, "probe": {"tiers": ["dsik"]}}, "config key probe.tiers: no tier is named 'dsik'; did you mean"),
        ({**SMALLEST, "tiers": {"a b": TIERS["disk"]}}, "config key tiers"),
        ({**SMALLEST, "node_class": "../elsewhere"}, "config key node_class: '../elsewhere'"),
        ({**SMALLEST, "node_class": "figures"}, "config key node_class: 'figures'"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(config: dict[str, Any], line: str) -> None:
    with pytest.raises(SettingsError) as raised:
        Settings.from_config(config)
    assert str(raised.value).startswith(line)


def test_shipped_configurations_are_valid() -> None:
    for file in (ROOT / "config" / "examples").glob("*.yaml"):
        config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
        merge(config, yaml.safe_load(file.read_text()))
        Settings.from_config(config, in_containers=True)


def test_runs_of_an_earlier_version_have_settings_without_later_sections() -> None:
    complete = Settings.from_config(SMALLEST).to_json()
    known = {name: value for name, value in complete.items() if name not in settings_module.EARLIER}
    assert Settings.from_json(known) == Settings.from_json(complete | dict(settings_module.EARLIER))
