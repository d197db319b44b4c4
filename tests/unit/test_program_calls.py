"""How a user's own program is called, and what identifies it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from configured import settings_at
from neurotier.analysis.tools import make_tool
from neurotier.core.errors import KilledError, ToolError
from support import script, sha256


def program(command: str, **keys: Any) -> Any:
    own = {"command": command, "mask": "mask.nii.gz", **keys}
    return make_tool(settings_at(tool={"name": "own", "own": own}).tool)


def calling(file: Path, **keys: Any) -> Any:
    """The tool that is a program of this path."""
    return program(f"'{file}' {{input}}", **keys)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A program without a first line, with which the kernel cannot start it."""
    script(tmp_path / "own program", "").write_text("no first line")
    return tmp_path / "own program"


def test_names_are_filled_in_word_by_word() -> None:
    tool = program("own -i {input} --to={output}/brain '{{x}} {threads}'", threads=3)
    assert tool.command("/a b/$(c).nii", "/w") == ["own", "-i", "/a b/$(c).nii", "--to=/w/brain", "{x} 3"]
    assert (tool.threads, tool.memory_mb) == (3, (4000, 40))


def test_a_program_is_identified_by_its_version_or_its_file(file: Path) -> None:
    script(file, 'echo "own $1"; echo "$WHICH" >&1\necho noise >&2')
    assert calling(file).version() == f"sha256:{sha256(file)[:12]}"
    assert calling(file, version=f"'{file}' 1.2", environment={"WHICH": "b"}).version() == "own 1.2 b"


@pytest.mark.parametrize(
    ("text", "version", "line"),
    [
        ("echo no >&2; exit 3", "'{file}' -v", "' -v failed (exit code 3): no"),
        (None, "'{file}' -v", "tool 'own': own cannot be started (Exec format error: "),
        ("", "/nowhere/own", "tool 'own': own cannot be started (No such file or directory: /nowhere/own)"),
    ],
)
def test_a_version_that_cannot_be_had_is_said_in_a_line(file: Path, text: str | None, version: str, line: str) -> None:
    if text is not None:
        script(file, text)
    with pytest.raises(ToolError, match=rf"^.*{re.escape(line)}.*\Z"):
        calling(file, version=version.format(file=file)).version()


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (None, ToolError, r"cannot be started \(Exec format error: "),
        ("kill -9 $$", KilledError, r"failed \(killed by SIGKILL.: it printed nothing$"),
        ("kill $$", KilledError, r"failed \(killed by SIGTERM.: it printed nothing$"),
        ("echo; echo no; kill -9 $$", KilledError, r"failed \(killed by SIGKILL.: no$"),
    ],
)
def test_a_program_that_does_not_end_is_named_with_the_image_and_its_own_words(
    file: Path, text: str | None, error: type[ToolError], said: str
) -> None:
    """Not with what was in the log before."""
    log = file.with_name("log")
    log.write_text("Slurm job 17 on n1\n")
    if text is not None:
        script(file, text)
    with pytest.raises(error, match=rf"^sub-01: own {said}"):
        calling(file).extract(None, file.with_name("in"), file.parent, log, "sub-01")
