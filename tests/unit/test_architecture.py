"""The house keeps its order: rule = script = log folder, captions are used, files have one subject."""

from __future__ import annotations

import re

from support import ROOT

RULES = {file.stem: file.read_text() for file in (ROOT / "workflow" / "rules").glob("*.smk")}
KEYS = [
    "input",
    "output",
    "log",
    "wildcard_constraints",
    "priority",
    "conda",
    "threads",
    "resources",
    "params",
    "message",
]
"""The order that snakefmt gives."""


def rules() -> dict[str, str]:
    """Rule name to its text."""
    found = {}
    for text in RULES.values():
        for part in re.split(r"^(?=(?:rule|checkpoint) )", text, flags=re.MULTILINE)[1:]:
            name = re.match(r"(?:rule|checkpoint) (\w+)", part)
            assert name is not None
            found[name[1]] = part
    return found


def test_scripts_and_log_folders_are_named_like_their_rules() -> None:
    scripts = {file.stem for file in (ROOT / "workflow" / "scripts").glob("*.py")}
    used = set()
    for name, text in rules().items():
        assert re.search(rf'LOGS\s*/\s*"{name}/', text), name
        script = re.search(r'script:\s*"\.\./scripts/(\w+)\.py"', text)
        assert (script is None) == ("shell:" in text), name
        if script:
            assert script[1] == name
            used.add(name)
    assert used == scripts


def test_keys_of_rules_come_in_one_order() -> None:
    for name, text in rules().items():
        keys = [key for key in re.findall(r"^    (\w+):", text, re.MULTILINE) if key in KEYS]
        assert keys == sorted(keys, key=KEYS.index), name


def test_every_caption_is_used_and_there() -> None:
    captions = {file.stem for file in (ROOT / "workflow" / "report").glob("*.rst")} - {"workflow"}
    used = {name for text in RULES.values() for name in re.findall(r"\.\./report/(\w+)\.rst", text)}
    assert used == captions


def test_common_rules_stay_short() -> None:
    assert len(RULES["common"].splitlines()) <= 100


def test_nothing_names_a_place_of_this_machine() -> None:
    for file in [
        *ROOT.glob("*.*"),
        *ROOT.glob("workflow/**/*.*"),
        *ROOT.glob("config/**/*"),
        *ROOT.glob("profiles/**/*"),
    ]:
        if file.is_file() and "__pycache__" not in file.parts and file.suffix != ".lock":
            text = file.read_text(errors="replace")
            assert str(ROOT) not in text, file
            assert "/root/" not in text, file
