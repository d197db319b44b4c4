"""How a user's own program is called, and what identifies it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from configured import settings_at
from neurotier.analysis.tools import make_tool
from neurotier.core.errors import KilledError, ToolError


def program(command: str, **keys: Any) -> Any:
    own = {"command": command, "mask": "mask.nii.gz", **keys}
    return make_tool(settings_at(tool={"name": "own", "own": own}).tool)


def script(folder: Path, text: str) -> Path:
    file = folder / "own program"
    file.write_text(text)
    file.chmod(0o755)
    return file


def test_names_are_filled_in_word_by_word() -> None:
    tool = program("own -i {input} --to={output}/brain '{{x}} {threads}'", threads=3)
    assert tool.command("/a b/$(c).nii", "/w") == ["own", "-i", "/a b/$(c).nii", "--to=/w/brain", "{x} 3"]
    assert (tool.threads, tool.memory_mb) == (3, (4000, 40))


def test_a_program_is_identified_by_its_version_or_its_file(tmp_path: Path) -> None:
    file = script(tmp_path, '#!/bin/sh\necho "own $1"; echo "$WHICH" >&1\necho noise >&2\n')
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    assert program(f"'{file}' {{input}}").version() == f"sha256:{digest[:12]}"
    asked = program(f"'{file}' {{input}}", version=f"'{file}' 1.2", environment={"WHICH": "b"})
    assert asked.version() == "own 1.2 b"


@pytest.mark.parametrize(
    ("text", "version", "line"),
    [
        ("#!/bin/sh\necho no >&2; exit 3\n", "'{file}' -v", "' -v failed (exit code 3): no"),
        ("no first line", "'{file}' -v", "tool 'own': own cannot be started (Exec format error: "),
        ("#!/bin/sh\n", "/nowhere/own", "tool 'own': own cannot be started (No such file or directory: /nowhere/own)"),
    ],
)
def test_a_version_that_cannot_be_had_is_said_in_a_line(tmp_path: Path, text: str, version: str, line: str) -> None:
    file = script(tmp_path, text)
    with pytest.raises(ToolError) as raised:
        program(f"'{file}' {{input}}", version=version.format(file=file)).version()
    assert line in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_program_that_cannot_be_started_is_named_with_the_image(tmp_path: Path) -> None:
    file = script(tmp_path, "no first line")
    with pytest.raises(ToolError, match=r"^sub-01: own cannot be started \(Exec format error: "):
        program(f"'{file}' {{input}}").extract(None, tmp_path / "in", tmp_path, tmp_path / "log", "sub-01")


@pytest.mark.parametrize(
    ("script_text", "said"),
    [
        ("kill -9 $$", "KILL.: it printed nothing"),
        ("kill $$", "TERM.: it printed nothing"),
        ("echo; echo no; kill -9 $$", "KILL.: no"),
    ],
)
def test_what_was_in_the_log_before_a_program_is_not_taken_for_its_words(
    tmp_path: Path, script_text: str, said: str
) -> None:
    file, log = script(tmp_path, f"#!/bin/sh\n{script_text}\n"), tmp_path / "log"
    log.write_text("Slurm job 17 on n1\n")
    with pytest.raises(KilledError, match=rf"^sub-01: own failed \(killed by SIG{said}$"):
        program(f"'{file}' {{input}}").extract(None, tmp_path / "in", tmp_path, log, "sub-01")
