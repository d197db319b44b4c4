"""Settings: schema, types, defaults and documentation say the same."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from configured import settings_at, tier
from jsonschema import Draft202012Validator
from neurotier.analysis.tools import TOOLS, make_tool
from neurotier.core.configuration import SCHEMAS, config_schema
from neurotier.core.errors import SettingsError
from neurotier.core.settings import Settings
from neurotier.core.tables import schema
from neurotier.core.tiers import tiers_of
from readmes import DOCUMENTS, LINES, blocks
from snakemake.cli import parse_args, parse_config
from snakemake.utils import update_config
from support import ROOT
from write_keys import PAGE, page


def test_every_schema_is_a_schema() -> None:
    for file in SCHEMAS.glob("*.yaml"):
        Draft202012Validator.check_schema(yaml.safe_load(file.read_text()))
    documents = [one for file in SCHEMAS.glob("tables/*.yaml") for one in yaml.safe_load_all(file.read_text()) if one]
    assert len({one["table"] for one in documents}) == len(documents) > 30
    for one in documents:
        Draft202012Validator.check_schema(schema(one["table"]))
        # a comma in a meaning without quotes ends it, and its first half is taken for the unit
        texts = {name: sum(isinstance(word, str) for word in column[1:]) for name, column in one["columns"].items()}
        assert [name for name, count in texts.items() if count > 2] == [], one["table"]


NAMED = config_schema()["properties"]["tool"]["properties"].keys() - {"name"}
"""Tools whose keys the schema has."""


@pytest.mark.parametrize("name", sorted({*TOOLS, *NAMED, "own"}))
def test_tools_have_the_options_of_the_schema(name: str) -> None:
    """As sections have its keys, or the smallest configuration could not be read: neither more nor less."""
    own = {"own": {"command": "own {input}", "mask": "m.nii"}} if name == "own" else {}
    make_tool(settings_at(tool={"name": name, **own}).tool)


def test_documentation_has_every_key_with_its_default() -> None:
    assert PAGE.read_text() == page(), "run: make keys"


def test_smallest_configuration_is_complete() -> None:
    settings = settings_at(tool=None)
    assert settings.dataset.source == "demo"
    assert (settings.tool.name, settings.tool.image) == ("brainextractor", "containers/brainextractor.def")
    assert settings.tool.options == {"fractional_threshold": 0.5, "iterations": 1000}
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


def test_numbers_in_braces_on_the_command_line_are_read() -> None:
    dataset = {"drop": "true", "version": "2", "participants": ["0025427"]}
    campaign = {"parallelism": ["2", "96"], "repetitions": "1"}
    tool = {"brainextractor": {"fractional_threshold": "0.4"}}
    settings = settings_at(dataset=dataset, tool=tool, campaign=campaign)
    assert (settings.dataset.drop, settings.dataset.version, settings.dataset.participants) == (True, "2", ["0025427"])
    assert settings.tool.options["fractional_threshold"] == 0.4
    assert (settings.campaign.parallelism, settings.campaign.repetitions) == ([2, 96], 1)


def test_whole_numbers_may_be_written_with_a_point() -> None:
    settings = settings_at(tiers={"disk": tier(".", capacity=1.0e12)}, campaign={"repetitions": "3.0"})
    assert (repr(settings.tiers["disk"].capacity), repr(settings.campaign.repetitions)) == ("1000000000000", "3")


def test_a_key_of_bet_is_laid_over_its_defaults() -> None:
    tool = settings_at(tool={"name": "bet", "bet": {"memory_mb": 1}}).tool
    assert (tool.options["mask"], tool.options["memory_mb"]) == ("brain_mask.nii.gz", 1)
    assert tool.image == "containers/fsl-bet.def"


WRONG = yaml.safe_load(Path(__file__).with_name("wrong_settings.yaml").read_text())


@pytest.mark.parametrize(("line", "config"), WRONG.items(), ids=str)
def test_what_is_wrong_is_said_with_its_key(line: str, config: dict[str, Any]) -> None:
    """How a command says it: workflow/test_bad_input.py."""
    with pytest.raises(SettingsError, match=f"^config key {re.escape(line)}"):
        tiers_of(settings_at(**config))  # which reads sizes


@pytest.mark.parametrize("results", ["of<SITE>", "of<2>", "a<b", "<a-b>"])
def test_only_names_that_snakemake_would_fill_in_are_refused(results: str) -> None:
    assert settings_at(results=results).results == results


def over_shipped(*texts: str, in_containers: bool = True, words: Any = None) -> None:
    """Read configurations, as YAML, and one of the command line, laid over ``config.yaml``."""
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    for given in (*map(yaml.safe_load, texts), parse_config(words)):
        update_config(config, given)
    Settings.from_config(config, in_containers=in_containers)


@pytest.mark.parametrize("file", [*(ROOT / "config/examples").glob("*.yaml")], ids=str)
def test_shipped_configurations_are_valid(file: Path) -> None:
    over_shipped(file.read_text())


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("snakemake ")])
def test_commands_of_the_readmes_ask_for_what_can_be_had(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    _, given = parse_args(shlex.split(line)[1:])
    texts = [file.read_text() for file in given.configfile or []]
    over_shipped(*texts, in_containers="apptainer" in line, words=given.config)


@pytest.mark.parametrize("document", [document for document in DOCUMENTS if blocks(document, "yaml")], ids=str)
def test_configurations_in_readmes_are_valid(document: Path) -> None:
    for block in blocks(document, "yaml"):
        over_shipped(block)


def test_arguments_may_have_names_and_doubled_braces() -> None:
    arguments = ["{participant}", "{session}", "{mem_gb}", '{{"a": 1}}', "{filter_file}"]
    app = {"level": "session", "filter_file": "a.json", "arguments": arguments}
    settings_at(app=app | {"group_arguments": ["{threads}", "{work}"]})
