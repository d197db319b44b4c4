"""Settings: schema, types, defaults and documentation say the same."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from configured import settings_at
from jsonschema import Draft202012Validator
from neurotier.analysis.tools import TOOLS, make_tool
from neurotier.core.configuration import SCHEMAS
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


@pytest.mark.parametrize("name", [*TOOLS, "bet", "own"])
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


def test_a_key_of_bet_is_laid_over_its_defaults() -> None:
    tool = settings_at(tool={"name": "bet", "bet": {"memory_mb": 1}}).tool
    assert (tool.options["mask"], tool.options["memory_mb"]) == ("brain_mask.nii.gz", 1)
    assert tool.image == "containers/fsl-bet.def"


@pytest.mark.parametrize(
    ("config", "line"),
    [
        ("results: ../elsewhere", "results: '../elsewhere' is not the name of a folder"),
        ("results: a{b}", "results: braces"),
        ("comparison: {results: [campaign]}", "comparison.results: 'campaign' is what runs of another kind are"),
        (
            "tool.bet.image: x",
            "tool.bet.image: unknown key; on the command line write --config 'tool={bet: {image: VALUE}}'",
        ),
        ("tool: {brainextractor: {fractional_threshold: 2}}", "tool.brainextractor.fractional_threshold: 2 is"),
        ("dataset: {source:../bids}", "dataset.source:../bids: unknown key; write a space after the colon: "),
        ("tool: {bet: {comand: x}}", "tool.bet.comand: unknown key; did you mean 'comm"),
        ("tool: {own: {mask: m.nii}}", "tool.own.command: this key is missing"),
        ("tool: {../own: {}}", "tool: '../own'"),
        ("campaign: {tools: [bte]}", "campaign.tools: 'bte' is not one of brainextractor"),
        ("dataset: '{sites: [A]'", "dataset: '{sites: [A]' is no YAML; close every brace"),
        ("tool: noop", "tool: 'noop' stands alone; write {name: noop}"),
        ("ior: {file_size: {each: 2}}", "ior.file_size: {'each': 2} is not"),
        ("dataset: {sites: [null]}", "dataset.sites.0: nothing is given"),
        ("shares: {participants: many}", "shares.participants: 'many' is not of type"),
        ("dataset: {sites: A}", "dataset.sites: 'A' stands alone; write [A]"),
        (
            "campaign: {placements: {a: {work: dsik}}}",
            "campaign.placements.a.work: no tier is named 'dsik'; did you mean 'disk'?",
        ),
        (
            "{tiers: {own: {path: /x, kind: block, node: true}}, placement: {results: own}}",
            "placement.results: tier 'own' is each node's own (node: true), and all jobs must see the same results",
        ),
        (
            "{tiers: {old: {path: /x, kind: block, read_only: true}}, campaign: {placements: {a: {work: old}}}}",
            "campaign.placements.a.work: tier 'old' is only read (read_only: true), and work is written",
        ),
        ("probe: {tiers: [dsik]}", "probe.tiers: no tier is named 'dsik'; did you mean 'disk'?"),
        ("tiers: {a b: {path: ., kind: block}}", "tiers"),
        ("node_class: ../elsewhere", "node_class: '../elsewhere'"),
        ("node_class: figures", "node_class: 'figures'"),
        ("app: {arguments: ['--mem={memory}']}", "app.arguments: '--mem={memory}': nothing is called {memory}"),
        ("app: {arguments: ['{session}']}", "app.arguments: '{session}': nothing is called {session} here"),
        ("app: {arguments: ['{a.b}']}", "app.arguments: '{a.b}' has something other than a name in braces"),
        ("app: {arguments: ['{threads!r}']}", "app.arguments: '{threads!r}' has something other than a name"),
        ("app: {arguments: ['{threads:>9}']}", "app.arguments: '{threads:>9}' has something other than a"),
        ("app: {arguments: ['{']}", "app.arguments: '{': "),
        ("app: {group_arguments: ['{participant}']}", "app.group_arguments: '{participant}': nothing is"),
        ("app: {arguments: ['{filter_file}']}", "app.arguments: '{filter_file}': nothing is called"),
        ("app: {filter_file: a.json}", "app.filter_file: the app is not told of it; add its option to app."),
        ("app: {caches: {one: {source: a, inside: /data/}}}", "app.caches.one.inside: '/data/' is"),
        ("app: {caches: {one: {source: a, inside: data}}}", "app.caches.one.inside: 'data'"),
        (
            "app: {caches: {one: {source: a, inside: /same}, two: {source: a, inside: /same}}}",
            "app.caches.two.inside: '/same' is that of one, too",
        ),
        ("app: {retry_exit_codes: [0]}", "app.retry_exit_codes.0: 0 is less than"),
        ("app: {attempts: 0}", "app.attempts: 0 is less than"),
        ("tool: {name: bte}", "tool.name: 'bte' is not one of brainextractor, bet, noop"),
        ("tiers: {disk: {path: .}}", "tiers.disk.kind: this key is missing"),
        ("dataset: {participants: [1]}", "dataset.participants.0: 1 was read as a number"),
        ("dataset: {version: 2024-01-01}", "dataset.version: 2024-01-01 was read as a date; put it in"),
        ("tiers: {disk: {path: ., kind: block, capacity: much}}", "tiers.disk.capacity: 'much' is not a size"),
    ],
)
def test_what_is_wrong_is_said_with_its_key(config: str, line: str) -> None:
    """How a command says it: workflow/test_bad_input.py."""
    with pytest.raises(SettingsError, match=f"^config key {re.escape(line)}"):
        tiers_of(settings_at(**yaml.safe_load(config)))  # which reads sizes


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ('command: "p {output}", mask: m.nii', "own.command: has no {input}; say in it where the path of the"),
        ('command: "p {input} {mask}", mask: m.nii', "own.command: '{mask}': nothing is called {mask} here; use"),
        ('command: "p \'{input}", mask: m.nii', 'own.command: "p \'{input}": No closing quotation'),
        ('command: " ", mask: m.nii', "own.command: names no program; begin with a program on PATH"),
        ('command: "./p {input}", mask: m.nii', "own.command: './p' is neither a name nor an absolute path"),
        ('command: "p {input}", mask: m.nii, version: "\'"', 'own.version: "\'": No closing quotation'),
        ('command: "p {input}"', "own: neither mask nor brain is given; name the one"),
        ('command: "p {input}", mask: m.nii, brain: b.nii', "own: both mask and brain are given"),
        ('command: "p {input}", mask: /m.nii', "own.mask: '/m.nii' is not below {output}; name"),
        ('command: "p {input}", mask: ../m.nii', "own.mask: '../m.nii' is not below {output}"),
        ('command: "p {input}", mask: "{output}/m"', "own.mask: '{output}/m' is not below {output}"),
    ],
)
def test_what_is_wrong_with_a_program_is_said_with_its_key(keys: str, line: str) -> None:
    with pytest.raises(SettingsError, match=rf"^config key tool\.{re.escape(line)}"):
        settings_at(tool=yaml.safe_load(f"{{name: own, own: {{{keys}}}}}"))


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
