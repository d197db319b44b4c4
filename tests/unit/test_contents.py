"""Contents by git-annex: what it is given, what is said of its failures, and that it ends with its caller."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from configured import settings_at
from neurotier.core.errors import KilledError, SourceError
from neurotier.core.files import write_text
from neurotier.dataset.commands import ask_annex
from neurotier.dataset.contents import drop_images, get_images, is_present
from support import committed, git, lives, quiet, script, wait_for

ASK = """
import sys
from dataclasses import replace
from pathlib import Path
from neurotier.dataset.contents import ask_annex
sys.executable = sys.argv[1]
ask_annex(Path(sys.argv[2]), "get", ["-x.nii"])
"""

NAMES = ["-x.nii", "a b.nii", "[ab]*.nii", ":(top)c.nii", "--force", "d/-e.nii", "f\u2028\x85.nii"]
SETTINGS = settings_at(dataset={"get_attempts": 3, "get_backoff_s": 0.1}).dataset


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The clone of a small dataset that has a file in git, too."""
    source = tmp_path / "source"
    for name in NAMES:
        write_text(source / name, f"content of {name}")
    committed(source, annexed=True)
    (source / "small").write_text("in git")
    git(source, "-c", "annex.largefiles=nothing", "add", "small")
    git(source, "commit", "-m", "small")
    git(tmp_path, "clone", str(source), "clone")
    git(tmp_path / "clone", "annex", "init", "clone")
    return tmp_path / "clone"


def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, lines: str) -> None:
    """A program that is found before the real one of this name."""
    folder = script(tmp_path / "programs" / name, lines).parent
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setattr(sys, "executable", str(folder / "python"))  # beside which git-annex is looked for first


def test_any_name_is_a_name(clone: Path) -> None:
    assert get_images(clone, NAMES, SETTINGS, quiet) == len(NAMES)
    assert [(clone / name).read_text() for name in NAMES] == [f"content of {name}" for name in NAMES]
    assert drop_images(clone, NAMES) == ""
    assert not any(is_present(clone, name) for name in NAMES)


def test_what_git_itself_holds_is_put_back_and_not_dropped(clone: Path, tmp_path: Path) -> None:
    """Also where there is no annex: with ``dataset.drop``, each start failed."""
    get_images(clone, NAMES[:1], SETTINGS, quiet)
    assert drop_images(clone, ["small", *NAMES[:1]]) == ""
    write_text(file := tmp_path / "plain/x.nii", "in git")
    assert drop_images(committed(file.parent), [file.name]) == ""
    file.unlink()
    assert get_images(file.parent, [file.name], SETTINGS, pytest.fail) == 1
    assert file.read_text() == "in git"


def test_a_tier_without_room_is_said_with_what_can_be_done(
    clone: Path, tmp_path: Path, mount_tmpfs: Callable[..., Path]
) -> None:
    """git-annex leaves 100 MB free, and would have its own options used."""
    small = shutil.copytree(clone, mount_tmpfs(tmp_path / "small", "size=8m") / "clone", symlinks=True)
    why = r"not enough free space, need .* MB more; free some on the dataset's tier: git-annex leaves 100 MB there"
    with pytest.raises(SourceError, match=why) as error:
        get_images(small, NAMES[:1], replace(SETTINGS, get_attempts=1), quiet)
    assert "--force" not in str(error.value)


@pytest.mark.parametrize("name", ["no such.nii", "small", "link.nii"])
def test_file_that_is_missing_and_not_annexed(clone: Path, name: str) -> None:
    """Also behind a link that may leave the dataset."""
    git(clone, "rm", "small")
    (clone / "link.nii").symlink_to(clone.parent / "store/x.nii")
    settings = replace(SETTINGS, links_to=[str(clone.parent / "store")])
    with pytest.raises(SourceError, match=f"{name}: is not in the dataset"):
        get_images(clone, [name], settings, pytest.fail)


def test_content_without_a_known_copy_is_not_asked_for_again(clone: Path) -> None:
    git(clone.parent / "source", "annex", "drop", "--force", "a b.nii")
    git(clone, "fetch")
    with pytest.raises(SourceError, match="knows of no copy"):
        get_images(clone, ["-x.nii", "a b.nii"], SETTINGS, pytest.fail)


BESIDE = """\
[ "$1" = get ] && [ ! -e {once} ] && touch {once} || exec {annex} "$@"
echo '{{"file": "-x.nii", "success": false, "error-messages": ["git-annex: .git/annex/{of} does not exist (No ...)"]}}'
exit 1
"""
"""A git-annex that meets another which fetches or drops the same content, once."""


@pytest.mark.parametrize("of", ["tmp/KEY getFileStatus:", "tmp/KEY to .git/annex/objects/KEY:"])
def test_what_another_git_annex_took_away_is_asked_for_again(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, of: str
) -> None:
    annex, once = Path(sys.executable).with_name("git-annex"), tmp_path / "once"
    stand_in(tmp_path, monkeypatch, "git-annex", BESIDE.format(once=once, annex=annex, of=of))
    said: list[str] = []
    assert get_images(clone, ["-x.nii"], SETTINGS, said.append) == 1
    assert [line.split(" (")[0] for line in said] == ["attempt 1 of 3 failed"]


def test_file_that_is_gone_is_put_back(clone: Path) -> None:
    """git-annex removes an unlocked one before it writes that anew: it may be at that for another, or be killed."""
    for name in ("small", "-x.nii"):
        (clone / name).unlink()
    assert get_images(clone, ["small", "-x.nii"], SETTINGS, pytest.fail) == 2
    assert (clone / "small").read_text() == "in git"
    assert is_present(clone, "-x.nii")


def test_file_that_is_gone_from_a_repository_in_a_plain_folder_stays_gone(clone: Path) -> None:
    """The folder is the user's, who removed the file."""
    (clone / "small").unlink()
    with pytest.raises(SourceError, match="clone/small: is not in the dataset"):
        get_images(clone.parent, ["clone/small"], SETTINGS, pytest.fail)
    assert not (clone / "small").exists()


def test_fetching_does_not_fail_if_another_run_drops_the_content_as_soon_as_it_is_here(
    clone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever stages it says that it is not there, and it is fetched once more."""

    def fetch_and_drop(fetch: Callable[[], None], *_: object) -> None:
        fetch()
        assert drop_images(clone, ["-x.nii"]) == ""

    monkeypatch.setattr("neurotier.dataset.contents.retry", fetch_and_drop)
    assert get_images(clone, ["-x.nii"], SETTINGS, quiet) == 1


def test_source_that_is_away_is_said_in_a_line(clone: Path) -> None:
    get_images(clone, ["-x.nii"], SETTINGS, quiet)
    (clone.parent / "source").rename(clone.parent / "away")
    attempts: list[str] = []
    with pytest.raises(SourceError, match=r"^a b.nii: could not be fetched: Unable to access these remotes: origin$"):
        get_images(clone, ["a b.nii"], SETTINGS, attempts.append)
    assert len(attempts) == 2
    assert drop_images(clone, ["-x.nii"]).startswith("unsafe Could not verify the existence")


@pytest.mark.parametrize(
    ("name", "lines"),
    [("git-annex", "kill -9 $$"), ("git", 'case "$*" in *--list*) kill -9 $$ ;; esac; exec {git} "$@"')],
)
def test_program_that_is_killed(
    clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, lines: str
) -> None:
    stand_in(tmp_path, monkeypatch, name, lines.format(git=shutil.which("git")))
    with pytest.raises(KilledError, match="git or git-annex: git-annex get was killed"):
        get_images(clone, NAMES, SETTINGS, pytest.fail)


def test_credentials_of_a_source_are_not_said(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    complaint = "fatal: unable to access https://me:planted@x.invalid/ds"
    stand_in(tmp_path, monkeypatch, "git-annex", f"echo '{complaint}' >&2; exit 1")
    said: list[str] = []
    with pytest.raises(SourceError, match=r"unable to access https://x\.invalid/ds") as raised:
        get_images(clone, NAMES, SETTINGS, said.append)
    assert len(said) == 2
    assert "planted" not in f"{said} {raised.value}"


def test_more_files_than_a_command_can_name(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A participant's of microscopy may be hundreds of thousands."""
    stand_in(tmp_path, monkeypatch, "git-annex", 'echo "{\\"success\\": true, \\"words\\": $#}"')
    records, _ = ask_annex(clone, "get", [f"sub-01/micr/{number:0200}.png" for number in range(12_000)])
    assert sum(record["words"] for record in records) - 12_000 == 4 * len(records)


def test_git_annex_ends_with_who_asked_it(clone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However that ends, here by SIGKILL."""
    python, pid = sys.executable, tmp_path / "pid"
    stand_in(tmp_path, monkeypatch, "git-annex", f"echo $$ > {pid}; exec sleep 600")
    caller = subprocess.Popen([python, "-c", ASK, sys.executable, str(clone)])
    wait_for(lambda: pid.exists() and pid.read_text(), caller)
    asking = psutil.Process(int(pid.read_text()))
    caller.kill()
    caller.wait()
    wait_for(lambda: not lives(asking))
