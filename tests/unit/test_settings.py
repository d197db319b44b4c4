"""Settings: schema, types, defaults and documentation say the same."""

from __future__ import annotations

import dataclasses
import inspect
import json
import shlex
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import yaml
from jsonschema import Draft202012Validator
from neurotier.analysis.tools import TOOLS
from neurotier.core.configuration import SCHEMAS, config_schema
from neurotier.core.errors import SettingsError
from neurotier.core.settings import ProgramSettings, Settings
from neurotier.core.tables import schema
from neurotier.core.tiers import tiers_of
from readmes import DOCUMENTS, LINES, blocks
from snakemake.cli import parse_args, parse_config
from snakemake.utils import update_config
from support import ROOT
from write_keys import PAGE, page

TIERS = {"disk": {"path": ".", "kind": "block"}}
PLACEMENT = dict.fromkeys(("dataset", "work", "images", "results"), "disk")
SMALLEST: dict[str, Any] = {"tiers": TIERS, "placement": PLACEMENT}


def with_app(**app: Any) -> dict[str, Any]:
    """The smallest configuration with keys of the section of apps."""
    return {**SMALLEST, "app": app}


def with_program(command: str, **keys: Any) -> dict[str, Any]:
    """The smallest configuration with a program of one's own."""
    return {**SMALLEST, "tool": {"name": "own", "own": {"command": command, "mask": "mask.nii.gz", **keys}}}


def test_every_schema_is_a_schema() -> None:
    for file in SCHEMAS.glob("*.yaml"):
        Draft202012Validator.check_schema(yaml.safe_load(file.read_text()))
    documents = [one for file in SCHEMAS.glob("tables/*.yaml") for one in yaml.safe_load_all(file.read_text()) if one]
    assert len({one["table"] for one in documents}) == len(documents) > 30
    for one in documents:
        Draft202012Validator.check_schema(schema(one["table"]))


def test_types_have_the_keys_of_the_schema() -> None:
    sections = {name: kind for name, kind in get_type_hints(Settings).items() if dataclasses.is_dataclass(kind)}
    del sections["tool"]  # whose options depend on the tool
    assert len(sections) == 16
    for section, types in sections.items():
        assert {field.name for field in dataclasses.fields(types)} == set(
            config_schema()["properties"][section]["properties"]
        )


def test_tools_have_the_options_of_the_schema() -> None:
    tool = config_schema()["properties"]["tool"]["properties"]
    assert sorted(tool) == sorted(["name", "bet", *TOOLS])
    program = [field.name for field in dataclasses.fields(ProgramSettings)]
    assert [*program, "image"] == list(config_schema()["$defs"]["program"]["properties"])
    for name, kind in TOOLS.items():
        assert [*inspect.signature(kind).parameters, "image"] == list(tool[name]["properties"])


def test_documentation_has_every_key_with_its_default() -> None:
    assert PAGE.read_text() == page(), "run: make keys"


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


def test_a_key_of_bet_is_laid_over_its_defaults() -> None:
    settings = Settings.from_config({**SMALLEST, "tool": {"name": "bet", "bet": {"memory_mb": 1}}})
    assert settings.tool.options["mask"] == "brain_mask.nii.gz"
    assert settings.tool.options["memory_mb"] == 1
    assert settings.tool.image == "containers/fsl-bet.def"


def test_empty_section_takes_its_defaults() -> None:
    assert Settings.from_config({**SMALLEST, "tool": None}).tool.name == "brainextractor"


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ({"placement": PLACEMENT}, "config key tiers: this key is missing"),
        ({**SMALLEST, "results": "../elsewhere"}, "config key results: '../elsewhere' is not the name of a folder"),
        ({**SMALLEST, "results": "a{b}"}, "config key results: braces"),
        (
            {**SMALLEST, "tool.bet.image": "x"},
            "config key tool.bet.image: unknown key; on the command line write --config 'tool={bet: {image: VALUE}}'",
        ),
        (
            {**SMALLEST, "tool": {"brainextractor": {"fractional_threshold": 2}}},
            "config key tool.brainextractor.fractional_threshold: 2 is",
        ),
        ({**SMALLEST, "tool": {"bet": {"comand": "x"}}}, "config key tool.bet.comand: unknown key; did you mean 'comm"),
        ({**SMALLEST, "tool": {"own": {"mask": "m.nii"}}}, "config key tool.own.command: this key is missing"),
        ({**SMALLEST, "tool": {"../own": {}}}, "config key tool: '../own'"),
        ({**SMALLEST, "campaign": {"tools": ["bte"]}}, "config key campaign.tools: 'bte' is not one of brainextractor"),
        ({**SMALLEST, "placement": "{work: disk"}, "config key placement: '{work: disk' is no YAML; close every brace"),
        ({**SMALLEST, "tool": "noop"}, "config key tool: 'noop' stands alone; write {name: noop}"),
        ({**SMALLEST, "shares": {"participants": "many"}}, "config key shares.participants: 'many' is not of type"),
        ({**SMALLEST, "dataset": {"sites": "A"}}, "config key dataset.sites: 'A' stands alone; write [A]"),
        (with_program("p {output}"), "config key tool.own.command: has no {input}; say in it where the path of the"),
        (with_program("p {input} {mask}"), "config key tool.own.command: '{mask}': nothing is called {mask} here; use"),
        (with_program("p '{input}"), 'config key tool.own.command: "p \'{input}": No closing quotation'),
        (with_program(" "), "config key tool.own.command: names no program; begin with a program on PATH"),
        (with_program("./p {input}"), "config key tool.own.command: './p' is neither a name nor an absolute path"),
        (with_program("~/p {input}"), "config key tool.own.command: '~/p' is neither a name nor an absolute path"),
        (with_program("p {input}", version="'"), 'config key tool.own.version: "\'": No closing quotation'),
        (with_program("p {input}", mask=None), "config key tool.own: neither mask nor brain is given; name the one"),
        (with_program("p {input}", brain="b.nii"), "config key tool.own: both mask and brain are given"),
        (with_program("p {input}", mask="/m.nii"), "config key tool.own.mask: '/m.nii' is not below {output}; name"),
        (with_program("p {input}", mask="../m.nii"), "config key tool.own.mask: '../m.nii' is not below {output}"),
        (with_program("p {input}", mask="{output}/m"), "config key tool.own.mask: '{output}/m' is not below {output}"),
        (
            {**SMALLEST, "campaign": {"placements": {"slow": {"work": "dsik"}}}},
            "config key campaign.placements.slow.work: no tier is named 'dsik'; did you mean 'disk'?",
        ),
        ({**SMALLEST, "probe": {"tiers": ["dsik"]}}, "config key probe.tiers: no tier is named 'dsik'; did you mean"),
        ({**SMALLEST, "tiers": {"a b": TIERS["disk"]}}, "config key tiers"),
        ({**SMALLEST, "node_class": "../elsewhere"}, "config key node_class: '../elsewhere'"),
        ({**SMALLEST, "node_class": "figures"}, "config key node_class: 'figures'"),
        (
            with_app(arguments=["--mem={memory}"]),
            "config key app.arguments: '--mem={memory}': nothing is called {memory}",
        ),
        (with_app(arguments=["{session}"]), "config key app.arguments: '{session}': nothing is called {session} here"),
        (with_app(arguments=["{a.b}"]), "config key app.arguments: '{a.b}' has something other than a name in braces"),
        (
            with_app(arguments=["{threads!r}"]),
            "config key app.arguments: '{threads!r}' has something other than a name",
        ),
        (with_app(arguments=["{threads:>9}"]), "config key app.arguments: '{threads:>9}' has something other than a"),
        (with_app(arguments=["{0}"]), "config key app.arguments: '{0}' has something other than a name in braces"),
        (with_app(arguments=['{"a": 1}']), "config key app.arguments: '{\"a\": 1}' has something other than a name"),
        (with_app(arguments=["{"]), "config key app.arguments: '{': "),
        (with_app(group_arguments=["{participant}"]), "config key app.group_arguments: '{participant}': nothing is"),
        (with_app(arguments=["{filter_file}"]), "config key app.arguments: '{filter_file}': nothing is called"),
        (
            with_app(filter_file="a.json"),
            "config key app.filter_file: the app is not told of it; add its option to app.",
        ),
        (
            with_app(caches={"one": {"source": "a", "inside": "/data/"}}),
            "config key app.caches.one.inside: '/data/' is",
        ),
        (with_app(caches={"one": {"source": "a", "inside": "data"}}), "config key app.caches.one.inside: 'data'"),
        (
            with_app(caches={name: {"source": "a", "inside": "/same"} for name in ("one", "two")}),
            "config key app.caches.two.inside: '/same' is that of one, too",
        ),
        (with_app(retry_exit_codes=[0]), "config key app.retry_exit_codes.0: 0 is less than"),
        (with_app(attempts=0), "config key app.attempts: 0 is less than"),
        ({**SMALLEST, "tool": {"name": "bte"}}, "config key tool.name: 'bte' is not one of brainextractor, bet, noop"),
        ({**SMALLEST, "tiers": {"disk": {"path": "."}}}, "config key tiers.disk.kind: this key is missing"),
        (
            {**SMALLEST, "dataset": {"participants": [1]}},
            "config key dataset.participants.0: 1 was read as a number",
        ),
        (
            {**SMALLEST, "tiers": {"disk": {**TIERS["disk"], "capacity": "much"}}},
            "config key tiers.disk.capacity: 'much' is not a size",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_key(config: dict[str, Any], line: str) -> None:
    """How a command says it: workflow/test_bad_input.py."""
    with pytest.raises(SettingsError) as raised:
        tiers_of(Settings.from_config(config))  # which reads sizes
    assert str(raised.value).startswith(line)


def test_shipped_configurations_are_valid() -> None:
    for file in (ROOT / "config" / "examples").glob("*.yaml"):
        config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
        update_config(config, yaml.safe_load(file.read_text()))
        Settings.from_config(config, in_containers=True)


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("snakemake ")])
def test_commands_of_the_readmes_ask_for_what_can_be_had(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    _, given = parse_args(shlex.split(line)[1:])
    config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
    for file in given.configfile or []:
        update_config(config, yaml.safe_load(file.read_text()))
    update_config(config, parse_config(given.config))
    Settings.from_config(config, in_containers="apptainer" in line)


@pytest.mark.parametrize("document", [document for document in DOCUMENTS if blocks(document, "yaml")], ids=str)
def test_configurations_in_readmes_are_valid(document: Path) -> None:
    for block in blocks(document, "yaml"):
        config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
        update_config(config, yaml.safe_load(block))
        Settings.from_config(config, in_containers=True)


def test_arguments_may_have_names_and_doubled_braces() -> None:
    app = {"level": "session", "arguments": ["{participant}", "{session}", "{mem_gb}", '{{"a": 1}}', "{filter_file}"]}
    Settings.from_config(with_app(**app, filter_file="a.json", group_arguments=["{threads}", "{work}"]))
