"""Calls of a BIDS App: by participant or session, again where it asks for that, and with its share of the job; and of a
user's own program, and what identifies it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from configured import settings_at, tier
from container_images import Engine, make_tiny
from neurotier.analysis import tools
from neurotier.analysis.app import call_app, merge_outputs
from neurotier.analysis.brains import Job, Share, root_files
from neurotier.analysis.tools import make_tool
from neurotier.containers.store import Cache, PlacedImage
from neurotier.core.errors import KilledError, ToolError
from neurotier.core.files import write_text
from neurotier.core.places import Places
from neurotier.core.private import make_private, private_folder
from neurotier.core.settings import Settings
from neurotier.dataset.index import image_at
from neurotier.run.needs import Granted, Needs
from pool_jobs import image as image_of
from pool_jobs import write_index
from support import UNPRIVILEGED, script, sha256

APP = """echo "call $*"
case " $* " in
*\\ --once\\ *) [ -e /out/tried ] || [ -e /work/intermediate/tried ] && exit 9
    echo | tee /out/tried /work/intermediate/tried; exit 75;;
esac
ls -R /data
mkdir -p /out/sub-01
for folder in /data/sub-01/ses-*; do
    cp "$folder"/anat/* /out/sub-01
    echo "${folder##*/}" >>/out/sub-01.html
done
echo same >/out/shared.txt
[ -z "$CACHE_HOME" ] || cat "$CACHE_HOME"/template >/out/template
echo >"$CACHE_HOME/written" 2>/dev/null && echo yes >/out/written
exit 0
"""
"""A BIDS App that prints what it sees, and ends with the exit code that it is asked for."""


@pytest.fixture(scope="module")
def image(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny(engine, tmp_path_factory.mktemp("app"), APP)


class Called:
    """A participant of two sessions on a work tier, and the app."""

    def __init__(self, engine: Engine, image: Path, folder: Path) -> None:
        self.placed = PlacedImage(engine.path, image, folder / "cache", 64 * "0", {})
        self.work, self.log = private_folder(folder) / "work/job", folder / "log"
        make_private(self.work)
        files = {f"ses-{session}/anat/sub-01_ses-{session}_T1w.nii.gz": session for session in "12"}
        for name, text in {**files, "sub-01_sessions.tsv": "session_id\n", "../README": "all\n"}.items():
            write_text(self.work / "in/sub-01" / name, text)

    def call(self, runs: Sequence[int] = (), **app: Any) -> list[dict[str, Any]]:
        """Call the app with such settings; the rows of its calls."""
        settings = settings_of(app, dataset={"source": "demo", "runs": [*runs]})
        names = ["sub-01_T1w.nii.gz", "ses-1/anat/sub-01_ses-1_run-3_T1w.nii.gz", "ses-2/anat/sub-01_ses-2_T1w.nii.gz"]
        files = [image for name in names if (image := image_at(f"sub-01/{name}", "", []))]
        job = Job("sub-01", files, self.work, settings, "1", self.log, self.placed, share=Share(2, 3500))
        return [*call_app(job, self.work, self.placed).calls]

    @property
    def made(self) -> dict[str, str]:
        """What was put out, by path."""
        out = self.work / "out"
        return {str(path.relative_to(out)): path.read_text() for path in out.rglob("*") if path.is_file()}

    @property
    def lines(self) -> list[str]:
        return self.log.read_text().splitlines()


def settings_of(app: dict[str, Any], folder: Path | str = ".", **sections: Any) -> Settings:
    app = {"image": "x.sif", "name": "tiny", **app}
    return settings_at(folder, in_containers=True, tiers={"memory": tier("/dev/shm")}, app=app, **sections)


def needs_of(app: dict[str, Any], on_cluster: bool = False, folder: Path | str = ".", **sections: Any) -> Needs:
    settings = settings_of(app, folder, **sections)
    return Needs(settings, Places.from_settings(settings), on_cluster)


@pytest.fixture
def called(engine: Engine, image: Path, tmp_path: Path) -> Called:
    return Called(engine, image, tmp_path)


def test_an_app_is_called_for_each_session_and_sees_no_other(called: Called) -> None:
    rows = called.call(level="session", session_option="--session-id", arguments=["--x={session}"])
    assert rows == [{"session": "1", "attempts": 1}, {"session": "2", "attempts": 1}]
    calls = [line for line in called.lines if line.startswith("call")]
    common = "call /data /out participant --participant-label 01"
    assert calls == [f"{common} --session-id {session} --x={session}" for session in "12"]
    seen = called.log.read_text().split("neurotier: session 2\n")
    assert ["ses-1" in part for part in seen] == [True, False]
    assert ["ses-2" in part for part in seen] == [False, True]
    assert all("sub-01_sessions.tsv" in part and "README" in part for part in seen)
    assert called.made == {
        "sub-01/sub-01_ses-1_T1w.nii.gz": "1",
        "sub-01/sub-01_ses-2_T1w.nii.gz": "2",
        "sub-01.html": "ses-1\n",
        "shared.txt": "same\n",
    }
    assert "neurotier: sessions differ in sub-01.html; the first was taken" in called.lines
    staged = sorted(path.name for path in (called.work / "in/sub-01").iterdir())
    assert staged == ["ses-1", "ses-2", "sub-01_sessions.tsv"], "it is there again, for who meters it"
    assert not (called.work / "sessions").exists()
    rows = called.call(level="session", session_option="--session-id", runs=[3])
    assert [row["session"] for row in rows] == ["1"], "of the other one no run is analysed"


@pytest.mark.parametrize(("codes", "attempts", "made"), [([75], 3, 3), ([74], 3, 1), ([75], 1, 1)])
def test_an_exit_code_that_asks_for_it_has_the_app_tried_again_from_the_beginning(
    called: Called, codes: list[int], attempts: int, made: int
) -> None:
    """Were anything left of the attempt before, it would end with another."""
    last = " in the last of 3 attempts" if made > 1 else ""
    with pytest.raises(ToolError, match=f"^tiny: the app ended with exit code 75{last}: "):
        called.call(arguments=["--once"], retry_exit_codes=codes, attempts=attempts)
    said = "exit code 75 (one of app.retry_exit_codes): the app is started again"
    lines = [line for line in called.lines if line.startswith("neurotier")]
    assert lines == [f"neurotier: attempt {number} of 3: {said}" for number in range(1, made)]


def test_an_app_reads_its_caches_and_cannot_write_to_them(called: Called, tmp_path: Path) -> None:
    (tmp_path / "template").write_text("brain\n")
    cache = Cache("flow", "elsewhere", 64 * "1", 1, 6)
    called.placed = called.placed._replace(caches={tmp_path: cache})
    called.call(caches={"flow": {"source": "elsewhere", "inside": "/flow", "variable": "CACHE_HOME"}})
    assert called.made["template"] == "brain\n"
    assert "written" not in called.made
    assert not (tmp_path / "written").exists()


@pytest.mark.parametrize(
    ("threads", "memory_mb", "at_once", "on_cluster", "share"),
    [
        (None, None, 1, False, (4, 8000)),
        (16, 32000, 4, False, (4, 8000)),
        (8, 64000, 1, False, (8, 64000)),
        (4, 32500, 4, True, (1, 8000)),
        (1, 100, 2, True, (1, 1)),
    ],
)
def test_an_app_is_given_what_its_job_has(
    threads: int | None, memory_mb: int | None, at_once: int, on_cluster: bool, share: tuple[int, int]
) -> None:
    granted = Granted(threads, memory_mb, at_once=at_once)
    assert needs_of({"threads": 4, "memory_mb": 8000}, on_cluster).share_of(granted, 0) == share


@pytest.mark.parametrize(("slots", "at_once"), [(None, 4), (0, 1), (2, 2), (9, 4)])
def test_no_more_are_analysed_at_once_than_a_node_has_cores_for(slots: int | None, at_once: int) -> None:
    needs = needs_of({"threads": 4}, on_cluster=True, shares={"at_once": 4})
    assert needs.concurrency(slots, list("abcdef")).at_once == at_once


def test_memory_that_holds_intermediates_is_not_given_to_the_app(tmp_path: Path) -> None:
    app, everyone = {"threads": 1, "memory_mb": 8000}, ["sub-01", "sub-02", "sub-03"]
    in_memory, on_disk = (needs_of(app, folder=tmp_path, placement={"work": name}) for name in ("memory", "disk"))
    write_index(in_memory.places, [image_of("01", 100_000_000), image_of("02", 1), image_of("03", 400_000_000)])
    share = in_memory.share_in_pool(Granted(2, 62_002, at_once=2), everyone)
    assert share == Share(1, (62_002 - 301 - 1201) // 2), "of the two largest, as was asked for"
    assert on_disk.share_in_pool(Granted(1, 8000), everyone) == Share(1, 8000)


def test_outputs_that_differ_in_kind(tmp_path: Path) -> None:
    outputs = [tmp_path / f"ses-{session}/out" for session in "12"]
    for folder, text in zip(outputs, "ab", strict=True):
        folder.mkdir(parents=True)
        (folder / "link").symlink_to("pipe")
        (folder / "text").write_text(text)
        (folder / "no\udcff\ntext").write_text(text)
    first, second = outputs
    (first / "kind").write_text("x")
    (second / "kind").symlink_to("text")
    assert merge_outputs(outputs, tmp_path / "target") == ["kind", r"no\udcff text", "text"], "they are printed"
    assert (tmp_path / "target/text").read_text() == "a"
    (first / "pipe").write_text("x")
    os.mkfifo(second / "pipe")
    with pytest.raises(ToolError, match=r"^ses-2/pipe: is a FIFO"):
        merge_outputs(outputs, tmp_path / "refused")


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


def test_temporary_files_of_a_program_are_on_the_work_tier(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless a socket could not be among them."""
    monkeypatch.setenv("TMPDIR", "/tmp")
    script(file, 'echo "in $TMPDIR"; exit 3')
    for longest_bytes, folder in ((500, file.parent), (5, "/tmp")):  # the folder of this test is deep
        monkeypatch.setattr(tools, "LONGEST_TMPDIR_BYTES", longest_bytes)
        with pytest.raises(ToolError, match=f"in {folder}$"):
            calling(file).extract(None, file.with_name("in"), file.parent, file.with_name("log"), "sub-01")


@pytest.mark.parametrize(
    ("text", "version", "line"),
    [
        ("echo no >&2; exit 3", "'{file}' -v", "' -v failed (exit code 3): no"),
        (None, "'{file}' -v", "tool 'own': own cannot be started (Exec format error: "),
        ("", "/nowhere/own", "tool 'own': own cannot be started (No such file or directory: /nowhere/own)"),
    ],
)
def test_why_the_version_of_a_program_is_not_known_is_said_in_a_line(
    file: Path, text: str | None, version: str, line: str
) -> None:
    if text is not None:
        script(file, text)
    with pytest.raises(ToolError, match=rf"^.*{re.escape(line)}.*\Z"):
        calling(file, version=version.format(file=file)).version()


def test_an_app_is_given_the_files_of_bids_at_the_root_of_a_dataset(tmp_path: Path) -> None:
    """What else lies there may have no copy, and everyone would fail."""
    own = ["CHANGES", "CITATION.cff", "README.md", "dataset_description.json", "participants.tsv"]
    for name in [*own, "README.pdf", "README.docx", "scans.zip"]:
        (tmp_path / name).symlink_to("nowhere")
    assert root_files(tmp_path) == own


def test_files_at_a_root_that_cannot_be_listed_are_not_taken_for_none(tmp_path: Path) -> None:
    """An app would analyse without them, as without a sidecar that says what its images are."""
    (tmp_path / "T1w.json").touch()
    tmp_path.chmod(0o111)
    asking = f"import pathlib, sys; from {root_files.__module__} import *; print(root_files(pathlib.Path(sys.argv[1])))"
    asked = subprocess.run([*UNPRIVILEGED, sys.executable, "-c", asking, tmp_path], capture_output=True, text=True)
    tmp_path.chmod(0o755)
    assert "PermissionError: [Errno 13] Permission denied" in asked.stderr, asked.stdout


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (None, ToolError, r"cannot be started \(Exec format error: "),
        ("kill -9 $$", KilledError, r"failed \(killed by SIGKILL, out of memory\?.: it printed nothing$"),
        ("kill $$", KilledError, r"failed \(killed by SIGTERM, out of memory\?.: it printed nothing$"),
        ("echo; echo no; kill -9 $$", KilledError, r"failed \(killed by SIGKILL, out of memory\?.: no$"),
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
