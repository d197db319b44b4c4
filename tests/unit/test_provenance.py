"""Derivatives as datasets: what is registered, grouped, described and remade, repositories that change folders, and who
may write to them: locks of git are removed only of a save that was killed here."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from configured import settings_at
from neurotier.analysis.activity import How, identifier
from neurotier.analysis.staging import OF_DATASET, aside, publish, set_dataset_aside, take_dataset_back
from neurotier.core.errors import BusyError, InputError, KilledError, SourceError, ToolError
from neurotier.core.files import remove_path, write_text
from neurotier.core.libc import LIBC, PR_SET_CHILD_SUBREAPER
from neurotier.core.places import Places
from neurotier.dataset.commands import datalad_errors, prepare_environment
from neurotier.dataset.source import Dataset
from neurotier.provenance.description import RAW, describe
from neurotier.provenance.remake import inputs_of_group, put_back, remake
from neurotier.provenance.saving import (
    COMMAND_BYTES,
    Made,
    changed_entries,
    clear_locks,
    groups,
    open_dataset,
    refuse_ignored,
    register,
    run_git,
    save,
    save_error,
    save_sites,
    writing,
)
from support import committed, git, wait_for

HOW: How = {"neurotier": "0.1.0", "name": "bet", "version": "6.0", "options": {"fractional_threshold": 0.5}}


def repository(folder: Path, config: str = "", origin: str = "https://example.org/raw.git") -> Path:
    """A dataset with one commit, a configuration of its own, and an address from which it came."""
    write_text(folder / ".datalad/config", config)
    committed(folder)
    git(folder, "config", "remote.origin.url", origin)
    return folder


def raw_at(folder: Path, *sites: str, version: str = "") -> Dataset:
    """The source of derivatives, with such sites."""
    return Dataset("raw", folder, "datalad", {site: {"version": version} for site in sites or ("",)}, {})


def opened(folder: Path) -> Path:
    """A dataset as it is made for derivatives, with a folder of a participant in it."""
    prepare_environment()
    (folder / "sub-1").mkdir(parents=True)
    open_dataset(folder, "", print)
    return folder


def test_a_raw_dataset_is_registered_without_secrets_at_the_commit_that_was_indexed(tmp_path: Path) -> None:
    """Results of another folder may share the clone, and have moved it on since; what is no identifier is left out."""
    config = '[datalad "dataset"]\n id = ../../elsewhere\n[annex]\n thin = true\n'
    raw = repository(tmp_path / "raw", config, "https://me:secret@example.org/raw.git")
    indexed = git(raw, "rev-parse", "HEAD")
    git(raw, "commit", "--allow-empty", "-m", "moved on")
    folder = repository(tmp_path / "derivatives")
    assert register(folder, raw_at(raw, version=indexed), "") == indexed
    assert git(folder, "ls-files", "--stage", RAW).split()[1] == indexed
    listed = git(folder, "config", "--file", ".gitmodules", "--list").splitlines()
    assert listed == [f"submodule.{RAW}.path={RAW}", f"submodule.{RAW}.url=https://example.org/raw.git"]


@pytest.mark.parametrize("address", ["ext::sh -c date", "--upload-pack=date", "https://x.org/a\nb"])
def test_an_address_that_would_run_something_is_not_handed_on(tmp_path: Path, address: str) -> None:
    raw = repository(tmp_path / "raw", origin=address)
    with pytest.raises(InputError, match="no address to register"):
        register(tmp_path, raw_at(raw), "")


@pytest.mark.parametrize("planted", [".git/config", "sub-01/.GIT/hooks/post-commit", "prov"])
def test_a_repository_that_an_app_plants_is_refused_and_the_own_one_stays(tmp_path: Path, planted: str) -> None:
    """git would run what the planted one names: here when the index is read. By a link into the own one, what describes
    the derivatives would be written there, and be broken branches."""
    final, made = repository(tmp_path / "derivatives"), tmp_path / "made"
    write_text(made / planted, "[core]\n fsmonitor = touch planted\n")
    if planted == "prov":
        (made / planted).unlink()
        (made / planted).symlink_to(".git/refs/heads")
    commit = git(final, "rev-parse", "HEAD")
    with pytest.raises(ToolError, match=f"{planted}: is part of a git repository"):
        publish(made, final, in_dataset=True)
    assert git(final, "rev-parse", "HEAD") == commit
    assert sorted(path.name for path in tmp_path.iterdir()) == ["derivatives", "made"]


@pytest.mark.parametrize("name", ["new\nline", "back\\slash", "latin \udce9"])
def test_a_name_that_git_annex_does_not_take_fails_who_wrote_it(tmp_path: Path, name: str) -> None:
    """And not every save; what is not saved may have it."""
    write_text(tmp_path / "made" / name, "")
    with pytest.raises(ToolError, match="has a name that git-annex does not take"):
        publish(tmp_path / "made", tmp_path / "final", is_saved=True)
    assert not (tmp_path / "final").exists()
    publish(tmp_path / "made", tmp_path / "final")
    assert (tmp_path / "final" / name).exists()


def test_what_was_removed_of_others_is_put_back(tmp_path: Path) -> None:
    """``datalad rerun`` removes outputs whose contents are not there, of everyone of the commit."""
    names = ["sub-01/a.json", "sub-01.html", "sub-01_T1w.html", "sub-01-x.html", "sub-012.html"]
    for name in names:
        write_text(tmp_path / name, name)
    committed(tmp_path)
    for name in names:
        (tmp_path / name).unlink()
    put_back(tmp_path, ["sub-01"])
    assert [name for name in names if (tmp_path / name).exists()] == names[:-1]


def test_derivatives_are_not_made_again_from_elsewhere_or_without_their_repository_or_inputs(tmp_path: Path) -> None:
    """As they are after a copy of the files alone."""
    for name in ("/a.json", "/b/a.json", "code/a.json", "code/neurotier/b/a.json"):
        with pytest.raises(InputError, match="is not below code/neurotier/ of a dataset of derivatives"):
            remake(Path(name), [], None)
    describe(tmp_path, [HOW])
    file, image = tmp_path / f"code/neurotier/{identifier(HOW)}.json", tmp_path / RAW / "sub-01/anat/sub-01_T1w.nii.gz"
    with pytest.raises(SourceError, match="could not be fetched: No installed dataset found"), datalad_errors():
        remake(file, [image], None)
    with pytest.raises(InputError, match="takes the inputs"):
        remake(file, [], None)


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        ({"stderr": "no\nsuch file"}, "failed with exit code 1: no such file$"),
        ({"stdout": "nothing to commit"}, "failed with exit code 1: nothing to commit$"),
        ({}, "failed with exit code 1: it gives no reason$"),
        ({"code": 128 + signal.SIGBUS}, "was killed; .* tier full, and start the same"),
    ],
)
def test_a_git_that_fails_or_is_killed_is_named_with_its_reason(ended: dict[str, Any], said: str) -> None:
    """git-annex maps its database to memory: the kernel ends by SIGBUS who has no room for what is written there."""
    prepare_environment()
    from datalad.support.exceptions import CommandError

    kind = KilledError if "code" in ended else SourceError
    with pytest.raises(kind, match=f"^git or git-annex: git commit {said}"), datalad_errors():
        raise CommandError(["git", "-c", "a.b=c", "commit", "-m", "text"], **{"code": 1, **ended})


def test_a_commit_holds_those_made_in_one_way_and_its_command_fits() -> None:
    def one(number: int, how: How = HOW, inputs: int = 1) -> Made:
        return Made(f"A/sub-{number}", [f"{RAW}/sub-{number}/{'x' * 100}"] * inputs, how, [f"sub-{number}"])

    many = COMMAND_BYTES // 200
    people = [one(1), one(2), one(3), one(4, HOW | {"version": "7"})]
    together = [[done.name for done in group] for group in groups(people, 2)]
    assert together == [["A/sub-1", "A/sub-2"], ["A/sub-3"], ["A/sub-4"]]
    assert [len(group) for group in groups(people, 16)] == [3, 1]
    long = [one(5, inputs=many), one(6, inputs=many), one(7)]
    assert [len(group) for group in groups(long, 16)] == [1, 2]


@pytest.mark.parametrize("moved", range(len(OF_DATASET) + 2))
def test_a_repository_is_never_lost_while_its_folder_is_replaced(tmp_path: Path, moved: int) -> None:
    """Killed before the new folder has its name, or after any entry has been moved into it."""
    final, made = tmp_path / "SiteA", tmp_path / "made"
    for name in (*OF_DATASET, "old"):
        write_text(final / name / "content", name)
    write_text(made / "new", "")
    set_dataset_aside(final)
    assert not final.exists()
    if moved > 0:
        made.rename(final)
        for name in OF_DATASET[: moved - 1]:
            (aside(final) / name).rename(final / name)
    take_dataset_back(final)
    assert {name for name in OF_DATASET if (final / name / "content").read_text() == name} == set(OF_DATASET)
    assert (final / "old").exists() == (moved == 0)
    assert not aside(final).exists()
    if moved == 0:
        publish(made, final, in_dataset=True)
        assert sorted(path.name for path in final.iterdir()) == sorted([*OF_DATASET, "new"])


def test_a_repository_that_is_not_ours_is_named(tmp_path: Path) -> None:
    folder = repository(tmp_path / "derivatives")
    for killed_on in ("", socket.gethostname()):
        with pytest.raises(InputError, match="not a DataLad dataset with an annex"):
            open_dataset(folder, killed_on, print)
        assert git(folder, "log", "--format=%s") == "all"
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked/.git").symlink_to(folder / ".git")
    with pytest.raises(InputError, match="is not a folder"):
        open_dataset(tmp_path / "linked", "", print)


def test_a_damaged_repository_is_named_with_the_command_that_helps(tmp_path: Path) -> None:
    folder = opened(tmp_path / "the derivatives")
    for _ in range(2):
        (folder / ".git/HEAD").write_text("")
        with pytest.raises(InputError, match="is damaged") as raised:
            open_dataset(folder, "", print)
        subprocess.run(["sh", "-c", str(raised.value).split("`")[1]], check=True)
        open_dataset(folder, "", print)
    assert len(list(tmp_path.glob(f"{folder.name}.git*"))) == 2, "what was moved aside"
    assert (folder / "sub-1").is_dir()


def test_the_group_level_is_given_everyone_s_files_and_what_they_share(tmp_path: Path) -> None:
    names = "sub-1/a.txt sub-1.html sub-10/b.txt sub-2/c/d.txt sub-2_x.html shared.txt made.txt"
    for name in names.split():
        write_text(tmp_path / name, "")
    group: dict[str, list[str]] = {"participants": ["sub-1", "sub-2"], "shared": ["shared.txt"], "made": ["made.txt"]}
    assert inputs_of_group(tmp_path, group) == ["shared.txt", "sub-1", "sub-1.html", "sub-2", "sub-2_x.html"]
    group["participants"].append("sub-3")
    with pytest.raises(InputError, match="sub-3: has no derivatives here"):
        inputs_of_group(tmp_path, group)


def test_what_is_gone_of_a_site_of_which_nobody_is_selected_now_is_saved(tmp_path: Path) -> None:
    """As all derivatives are when everyone is to be analysed in another way."""
    places = Places(*[tmp_path / "results"] * 5)
    places.state.mkdir(parents=True)
    people = []
    for site in ("A", "B"):
        repository(tmp_path / "raw" / site)
        opened(places.derivatives / site)
        for name in ("README", "sub-1/mask.nii.gz"):
            (places.derivatives / site / name).write_text("mask")
        people.append(Made(f"{site}/sub-1", [], HOW, ["sub-1"]))

    def saved(people: list[Made]) -> dict[str, str]:
        raw = raw_at(tmp_path / "raw", "A", "B")
        return save_sites(raw, people, settings_at(results_dataset=True), places, print, "")

    before = saved(people)
    own = repository(places.derivatives / "own")
    for name in ("sub-1", "README"):
        remove_path(places.derivatives / "B" / name)
    after = saved(people[:1])
    assert (after["A"], after.keys()) == (before["A"], before.keys())
    assert git(places.derivatives / "B", "log", "-1", "--format=%s") == "Remove README, sub-1, no longer there"
    assert git(places.derivatives, "status", "--porcelain") == "?? own/"
    assert git(own, "log", "--format=%s").count("\n") == 0


@pytest.mark.parametrize("how", [HOW, {}])
def test_what_an_app_leaves_in_sourcedata_is_saved_and_the_source_is_not(tmp_path: Path, how: How) -> None:
    """fMRIPrep has FreeSurfer's results there. How they were made may not be known any more."""
    raw, places = repository(tmp_path / "raw"), Places(*[tmp_path] * 5)
    folder = opened(places.derivatives)
    places.state.mkdir()
    (folder / ".bidsignore").write_bytes(b"*.html\nJos\xe9*")  # an app's own, in whatever encoding
    for name in ("sub-1/a.txt", "sourcedata/freesurfer/sub-1/b.txt", "sourcedata/c.txt", f"{RAW}/d.txt"):
        write_text(folder / name, "text")
    settings = settings_at(tmp_path, in_containers=True, app={"image": "app.sif"})
    save_all = partial(save_sites, raw_at(raw), [Made("sub-1", [], how, ["sub-1"])], settings, places, print, "")
    save_all()
    saved = git(folder, "ls-files", "sub-1", "sourcedata").splitlines()
    assert (folder / ".bidsignore").read_bytes() == b"*.html\nJos\xe9*\nprov\nprov/**\n"
    assert saved == ["sourcedata/c.txt", "sourcedata/freesurfer/sub-1/b.txt", RAW, "sub-1/a.txt"]
    remove_path(folder / "sourcedata/freesurfer")
    save_all()
    assert git(folder, "ls-files", "sourcedata").splitlines() == ["sourcedata/c.txt", RAW]
    assert git(folder, "log", "-1", "--format=%s") == "Remove sourcedata/freesurfer, no longer there"


def test_names_that_mean_something_to_datalad_are_recorded_so_that_a_rerun_finds_them(tmp_path: Path) -> None:
    """It fills in names in braces in each list that it is given, and again when it runs the command once more."""
    from datalad.core.local.run import run_command

    folder, names = opened(tmp_path / "derivatives"), ["a{b}.txt", "c[1].txt", "d*.txt"]
    for name in names:
        write_text(folder / name, name)
    made = Made("", [f"{{{name}" for name in names], HOW, names)
    dataset = open_dataset(folder, "", print)
    save(dataset, "odd", made=[made])
    assert git(folder, "show", "--name-only", "--format=").splitlines() == names
    _, _, record = git(folder, "log", "-1", "--format=%B").partition("===\n")
    recorded = json.loads(record.partition("^^^")[0])
    planned = run_command("true", dataset, recorded["inputs"], recorded["outputs"], dry_run="command")
    assert [result["dry_run_info"]["outputs"] for result in planned] == [names]


def test_a_users_own_configuration_of_git_changes_nothing_and_a_tool_s_gitignore_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tool's ``.gitignore`` would leave files out without a word. Clones learn of contents even if the user's annexes
    are private."""
    (tmp_path / "ignoring").write_text("*.nii.gz\n")
    own = f"[core]\n excludesFile = {tmp_path / 'ignoring'}\n[annex]\n private = true\n"
    (tmp_path / "gitconfig").write_text(own)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    folder = opened(tmp_path / "derivatives")
    uuid = git(folder, "config", "--local", "annex.uuid")
    assert git(folder, "cat-file", "blob", "git-annex:uuid.log").startswith(uuid)
    (folder / "sub-1/brain.nii.gz").touch()
    refuse_ignored(folder)
    assert changed_entries(folder) == {"sub-1"}
    (folder / "sub-1/.gitignore").write_text("*.gz\n")
    with pytest.raises(InputError, match=r"sub-1/brain\.nii\.gz would not be saved"):
        refuse_ignored(folder)


def test_thousands_of_participants_leave_in_one_commit(tmp_path: Path) -> None:
    """Their names are more than the 128 KiB that Linux takes as one argument."""
    folder = opened(tmp_path / "derivatives")
    dataset = open_dataset(folder, "", print)
    names = [f"sub-{number:0100d}" for number in range(1500)]
    (tmp_path / "mask").write_text("mask")
    blob = git(folder, "hash-object", "-w", str(tmp_path / "mask"))
    listed = "".join(f"100644 {blob}\t{name}/mask.nii\n" for name in names)
    subprocess.run(["git", "update-index", "--index-info"], cwd=folder, input=listed, text=True, check=True)
    git(folder, "commit", "-m", "derivatives")
    save(dataset, "gone", names)
    assert git(folder, "log", "-1", "--format=%s") == "gone"
    assert not [name for name in git(folder, "ls-files").splitlines() if name.startswith("sub-")]


HERE = socket.gethostname()
LOCKS = ("index.lock", "HEAD.lock", "refs/heads/main.lock", "objects/maintenance.lock", "annex/index.lock")


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    """A repository with every lock that a killed git has been seen to leave."""
    made = tmp_path / "derivatives"
    made.mkdir()
    git(made, "init")
    (made / ".git/annex").mkdir()
    for lock in LOCKS:
        (made / ".git" / lock).touch()
    return made


def locks_in(locked: Path) -> int:
    return len(list(locked.rglob("*.lock")))


@pytest.mark.parametrize(
    ("killed_on", "said"),
    [("", r"HEAD\.lock: another program is writing .* wait for it"), ("elsewhere", "a save on elsewhere was killed")],
)
def test_locks_of_somebody_else_stay(locked: Path, killed_on: str, said: str) -> None:
    with pytest.raises(BusyError, match=said):
        clear_locks(locked, killed_on)
    assert locks_in(locked) == len(LOCKS)


def test_a_lock_that_git_reports_in_another_language_is_waited_for(
    locked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where git's translations are installed."""
    for name, value in {"LC_ALL": "C.UTF-8", "LANGUAGE": "de"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BusyError):
        run_git(locked, "add", ".")


def test_what_somebody_else_has_just_committed_is_no_failure_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's own commit takes what is staged here with it; git then says on its usual output that nothing is,
    whatever else it warns of."""
    folder = repository(tmp_path / "derivatives")
    monkeypatch.setenv("GIT_TRACE", "1")
    tracked = ".datalad/config"
    texts = [[tracked], [f"sub-{number:02}" for number in range(50)], [tracked]]
    says = ["nothing to commit", "nothing added to commit", "no changes added to commit"]
    for names, said in zip(texts, says, strict=True):
        for name in names:
            write_text(folder / name, said if said == says[-1] else "")
        with pytest.raises(BusyError, match=f"another program is writing to this dataset: .*{said}"):
            run_git(folder, "commit", "--quiet", "--message", "mine")


def test_a_lock_of_the_list_of_subdatasets_is_removed_with_the_others(locked: Path) -> None:
    lock = locked / ".gitmodules.lock"
    lock.touch()
    (locked / ".gitmodules").touch()
    words = ["git", "config", "--file", ".gitmodules", "a.b", "c"]
    done = subprocess.run(words, cwd=locked, capture_output=True, text=True)
    assert isinstance(save_error(locked, done.stderr), BusyError)
    clear_locks(locked, HERE)
    assert not locks_in(locked)


def test_locks_stay_while_a_git_works_there(locked: Path) -> None:
    """Such as a user's own commit, which waits for an editor; none that this process has started."""
    LIBC.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)  # a meter in this worker makes orphans its children: its own gits
    waits, ends = os.pipe()
    start = "exec 3<&0; git cat-file --batch <&3 >/dev/null & echo $!"
    started = subprocess.run(["sh", "-c", start], cwd=locked, stdin=waits, stdout=subprocess.PIPE, check=True)
    os.close(waits)
    reader = psutil.Process(int(started.stdout))
    wait_for(lambda: reader.name() == "git")  # until then it is still the shell
    with pytest.raises(BusyError, match=rf"process {reader.pid}, git"):
        clear_locks(locked, HERE)
    assert locks_in(locked)
    os.close(ends)
    wait_for(lambda: not reader.is_running())
    clear_locks(locked, HERE)


def test_a_save_that_fails_leaves_a_note_until_another_has_come_to_its_end(tmp_path: Path) -> None:
    places = Places(*[tmp_path] * 5)
    write_text(places.saving, "elsewhere")
    with pytest.raises(KeyError), writing(places):
        raise KeyError
    with writing(places) as killed_on:
        assert killed_on == "elsewhere", "what that has left may be there"
    with pytest.raises(KeyError), writing(places):
        raise KeyError
    assert places.saving.read_text() == HERE
    places.saving.unlink()
    with pytest.raises(BusyError), writing(places):
        raise BusyError("somebody else writes")
    assert not places.saving.exists(), "locks that are found next are not ours"
