"""Datasets made to harm: links to files of the host, loops, FIFOs, names and addresses that are options or commands.

The host's files hold a word that must appear nowhere: not in results, logs and the report, not on any tier.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from neurotier.core.errors import NeurotierError
from neurotier.core.settings import DatasetSettings
from neurotier.dataset.datalad_environment import prepare_environment
from neurotier.dataset.index import Index, index_dataset
from neurotier.dataset.source import Dataset, obtain, plain_sites
from support import STAND_INS, Ended, Project, git, plain_dataset, small_head, t1w

WORD = "canary-5d1e"
SETTINGS = DatasetSettings("", None, [], [], [], [], 4, 1, 0.0, False, "none", [])
BET = {"name": "bet"}


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """A folder of the host with files that are nobody's business, some named as if they were a participant's."""
    folder = tmp_path / "host"
    names = [t1w("folder"), "anat/sub-anat_T1w.nii.gz", f"anat/{WORD}_T1w.nii.gz", "secret.nii.gz", "README"]
    for name in [*names, f"sub-folder/anat/sub-folder_acq-{WORD.replace('-', '')}_T1w.nii.gz"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(WORD * 100)
    (folder / "participants.tsv").write_text(f"participant_id\nsub-{WORD}\n")
    return folder


def add_links(dataset: Path, host: Path) -> dict[str, str]:
    """Links of every kind that lead where they must not; participant to what is said of it."""
    links = {
        t1w("file"): host / "secret.nii.gz",
        t1w("up"): Path(os.path.relpath(host / "secret.nii.gz", dataset / "sub-up" / "anat")),
        t1w("system"): Path("/etc/passwd"),
        t1w("zero"): Path("/dev/zero"),
        t1w("git"): Path("../../.git/config"),
        t1w("circle"): Path("sub-circle_T1w.nii.gz"),
        "sub-folder": host / "sub-folder",
        "sub-anat/anat": host / "anat",
        "sub-good/loop": Path("../.."),
        "sub-good/anat/again": Path(".."),
        "participants.tsv": host / "participants.tsv",
    }
    for name, target in links.items():
        (dataset / name).parent.mkdir(parents=True, exist_ok=True)
        (dataset / name).symlink_to(target)
    leaving = dict.fromkeys(("sub-file", "sub-up", "sub-system", "sub-zero"), "is a link that leads out of the dataset")
    return leaving | {"sub-git": "is a link that leads out", "sub-circle": "is a link that leads in a circle"}


def assert_nowhere(folder: Path) -> None:
    """The host's word is in no file's name and in no file below a folder."""
    for root, names, files in os.walk(folder):
        for name in [*names, *files]:
            assert WORD not in name, Path(root, name)
        for path in (Path(root, name) for name in files):
            if path.is_file() and not path.is_symlink():
                assert WORD.encode() not in path.read_bytes(), path


def assert_only_good_is_done(project: Project, ended: Ended, reasons: dict[str, str]) -> None:
    """One participant is analysed, the others failed with their reasons."""
    assert ended.code != 0
    assert "Traceback" not in ended.output
    assert f"1 of {len(reasons) + 1} participants done, {len(reasons)} failed" in ended.output, ended.output
    for participant, reason in reasons.items():
        (line,) = ended.lines(f"failed  {participant}: ")
        assert reason in line
        assert project.failure(participant)["exit_code"] == 65
    skipped = (project.results / "index" / "skipped.tsv").read_text()
    assert "'sub-folder'\tis a link that leads out of the dataset" in skipped
    assert "'sub-anat/anat'\tis a link that leads out of the dataset" in skipped
    assert "'participants.tsv'\tis a link that leads out of the dataset" in skipped
    assert project.leftovers() == []
    assert_nowhere(project.folder)


def test_links_of_a_datalad_dataset_lead_nowhere_else(project: Project, host: Path, tmp_path: Path) -> None:
    prepare_environment()
    from datalad.api import create

    dataset = create(str(tmp_path / "study"), result_renderer="disabled")
    plain_dataset(dataset.pathobj, {t1w("good"): small_head()})
    reasons = add_links(dataset.pathobj, host)
    dataset.save(result_renderer="disabled")
    ended = project.snakemake(*project.configure(dataset={"source": str(dataset.path)}, tool=BET), path=STAND_INS)
    assert_only_good_is_done(project, ended, reasons)


def test_links_of_a_plain_folder_lead_nowhere_else_and_nothing_blocks(project: Project, host: Path) -> None:
    bids = plain_dataset(project.folder / "bids", {t1w("good"): small_head(), t1w("fifo"): b"", t1w("device"): b""})
    reasons = add_links(bids, host) | {"sub-fifo": "is a FIFO, and only files are read"}
    (bids / t1w("fifo")).unlink()
    os.mkfifo(bids / t1w("fifo"))
    os.mkfifo(bids / "sub-good" / "anat" / "layout_config.json")  # pybids would read it
    if os.getuid() == 0:
        (bids / t1w("device")).unlink()
        os.mknod(bids / t1w("device"), 0o020600, os.makedev(1, 5))  # as /dev/zero
        reasons["sub-device"] = "is a device, and only files are read"
    else:
        shutil.rmtree(bids / "sub-device")
    ended = project.snakemake(*project.configure(dataset={"source": "bids"}, tool=BET), path=STAND_INS)
    assert_only_good_is_done(project, ended, reasons)


def index(folder: Path, suffixes: list[str] | None = None, links_to: tuple[Path, ...] = ()) -> Index:
    """Index a plain folder as the workflow does."""
    settings = dataclasses.replace(SETTINGS, links_to=[str(path) for path in links_to])
    sites = {site: {"url": "", "version": ""} for site in plain_sites(folder, settings.links_to)}
    return index_dataset(Dataset(str(folder), folder, "folder", sites), settings, suffixes)


def test_files_of_an_app_are_listed_without_following_links_out(tmp_path: Path, host: Path) -> None:
    bids = plain_dataset(tmp_path / "bids", {t1w("good"): small_head()})
    add_links(bids, host)
    (bids / "sub-good" / "anat" / "sub-good_T1w.json").symlink_to(host / "README")
    found = index(bids, suffixes=[])
    assert {image.participant for image in found.images} == {
        *("sub-file", "sub-up", "sub-system", "sub-zero", "sub-git", "sub-circle", "sub-good")
    }
    sizes = {image.path: image.size_bytes for image in found.images}
    assert sizes["sub-good/anat/sub-good_T1w.json"] is None  # listed, so that its participant fails by name
    assert [path for path, size in sizes.items() if size is not None] == [t1w("good")]
    assert WORD not in str(found)


def test_site_that_is_a_link_out_is_none(tmp_path: Path, host: Path) -> None:
    plain_dataset(tmp_path / "bids" / "SiteA", {t1w("01"): small_head()})
    (tmp_path / "bids" / "dataset_description.json").unlink(missing_ok=True)
    (tmp_path / "bids" / "SiteB").symlink_to(host)
    assert plain_sites(tmp_path / "bids") == ["SiteA"]
    assert plain_sites(tmp_path / "bids", [str(host)]) == ["SiteA", "SiteB"]


def test_folder_made_of_links_is_analysed_where_its_store_is_named(tmp_path: Path) -> None:
    store = plain_dataset(tmp_path / "store", {t1w("01"): small_head(), t1w("02"): small_head()})
    bids = plain_dataset(tmp_path / "bids", {t1w("03"): small_head()})
    (bids / "sub-01" / "anat").mkdir(parents=True)
    (bids / t1w("01")).symlink_to(store / t1w("01"))
    (bids / "sub-02").symlink_to(store / "sub-02")
    sizes = {image.label: image.size_bytes for image in index(bids, links_to=(store,)).images}
    assert sizes == {label: (store / t1w("01")).stat().st_size for label in ("01", "02", "03")}
    alone = index(bids)
    assert {image.label: image.size_bytes is None for image in alone.images} == {"01": True, "03": False}
    assert "'sub-02'" in [entry.item for entry in alone.skipped]


@pytest.mark.parametrize("kind", ["FIFO", "large", "nul"])
def test_table_of_participants_that_is_none_is_left_out(tmp_path: Path, kind: str) -> None:
    bids = plain_dataset(tmp_path / "bids", {t1w("01"): small_head()})
    table = bids / "participants.tsv"
    if kind == "FIFO":
        os.mkfifo(table)
    elif kind == "large":
        with table.open("wb") as file:
            file.truncate(1 << 40)
    else:
        table.write_bytes(b"participant_id\n" + b"\0" * 200_000)
    began_s = time.monotonic()
    indexed = index(bids)
    assert time.monotonic() - began_s < 5
    assert [image.label for image in indexed.images] == ["01"]
    assert indexed.skipped[0].item == "'participants.tsv'"


def test_many_links_between_folders_end(tmp_path: Path) -> None:
    """Each of 30 folders leads to all others: by every way there would be more than 10^30 of them."""
    bids = plain_dataset(tmp_path / "bids", {t1w("01"): small_head()})
    for one in range(30):
        (bids / "sub-01" / f"ses-{one}").mkdir()
        for other in range(30):
            (bids / "sub-01" / f"ses-{one}" / f"to-{other}").symlink_to(f"../ses-{other}")
    began_s = time.monotonic()
    assert [image.path for image in index(bids).images] == [t1w("01")]
    assert time.monotonic() - began_s < 10


# Options and commands


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that appears if ssh is called, or a command of an address is run; git is told to allow everything."""
    mark, programs = tmp_path / "ran", tmp_path / "bin"
    programs.mkdir()
    (programs / "ssh").write_text(f'#!/bin/sh\necho "$@" >> {mark}\nexit 255\n')
    (programs / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GIT_ALLOW_PROTOCOL", "ext:file:git:http:https:ssh")
    yield mark
    assert not mark.exists(), mark.read_text()


ADDRESSES = [
    "ext::sh -c touch% MARK",
    "ext::touch MARK",
    "ssh://-oProxyCommand=touch${IFS}MARK/x",
    "ssh://me@-oProxyCommand=touch${IFS}MARK/x",
    "ssh://%2DoProxyCommand=touch${IFS}MARK/x",
    "ria+ssh://-oProxyCommand=touch${IFS}MARK/x#~a",
    "me@-oProxyCommand=touch${IFS}MARK:x",
    "-oProxyCommand=touch${IFS}MARK:x",
    "--upload-pack=touch MARK",
    "datalad-annex::?type=external&externaltype=x",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_source_is_never_an_option_or_a_command(tmp_path: Path, ran: Path, address: str) -> None:
    with pytest.raises(NeurotierError):
        obtain(SETTINGS, address.replace("MARK", str(ran)), tmp_path / "clones", lambda _: None)


@pytest.mark.parametrize("key", ["url", "datalad-url", "candidate", "substitute"])
def test_addresses_of_subdatasets_are_never_options_or_commands(
    demo_copy: Path, tmp_path: Path, ran: Path, key: str
) -> None:
    """The site is named as one that cannot be reached; the other is there."""
    shutil.rmtree(demo_copy / "SiteB", ignore_errors=True)
    (demo_copy / "SiteB").mkdir(exist_ok=True)
    for number, address in enumerate(ADDRESSES if key == "url" else ADDRESSES[::4]):
        address = address.replace("MARK", str(ran))
        if key == "candidate":
            name = "datalad.get.subdataset-source-candidate-100x"
            git(demo_copy, "config", "--file", ".datalad/config", name, address)
        elif key == "substitute":
            name = "datalad.clone.url-substitute.x"
            git(demo_copy, "config", "--file", ".datalad/config", name, f"|.*SiteB|{address}")
        else:
            git(demo_copy, "config", "--file", ".gitmodules", f"submodule.SiteB.{key}", address)
        git(demo_copy, "commit", "--quiet", "--all", "-m", "hostile")
        clones = tmp_path / f"clones-{number}"
        try:
            dataset = obtain(SETTINGS, str(demo_copy), clones, lambda _: None)
        except NeurotierError:
            assert key in ("candidate", "substitute")  # they are for every sub-dataset
            continue
        assert list(dataset.sites) == ["SiteA"]
        assert "its address" in dataset.unreachable["SiteB"], address


def test_link_in_place_of_gitmodules_is_refused(demo_copy: Path, tmp_path: Path) -> None:
    shutil.move(demo_copy / ".gitmodules", tmp_path / "elsewhere")
    (demo_copy / ".gitmodules").symlink_to(tmp_path / "elsewhere")
    git(demo_copy, "add", "--all", ".gitmodules")
    git(demo_copy, "commit", "--quiet", "-m", "hostile")
    with pytest.raises(NeurotierError):
        obtain(SETTINGS, str(demo_copy), tmp_path / "clones", lambda _: None)


@pytest.mark.parametrize("version", ["--upload-pack=touch MARK", "-f", "--", "--exec=touch MARK", "-bx", "a b", ""])
def test_version_is_never_an_option(demo_source: Path, tmp_path: Path, ran: Path, version: str) -> None:
    settings = dataclasses.replace(SETTINGS, version=version.replace("MARK", str(ran)))
    with pytest.raises(NeurotierError, match="has no branch, tag or commit"):
        obtain(settings, str(demo_source), tmp_path / "clones", lambda _: None)
    assert not [path for path in (tmp_path / "clones").iterdir() if path.is_dir()]


def test_versions_that_are_meant_are_found(demo_copy: Path, tmp_path: Path) -> None:
    """A branch that is not the source's own, a tag, and the beginning of a commit."""
    git(demo_copy, "branch", "side")
    git(demo_copy, "tag", "v1")
    commit = git(demo_copy, "rev-parse", "HEAD")
    for version in ("side", "v1", commit[:10]):
        dataset = obtain(dataclasses.replace(SETTINGS, version=version), str(demo_copy), tmp_path / "c", lambda _: None)
        assert git(dataset.path, "rev-parse", "HEAD") == commit


# Labels


def test_label_with_a_plus_runs_through_the_whole_workflow(project: Project) -> None:
    """``+`` is allowed in labels since BIDS 1.11."""
    image = "sub-a+b/ses-1+2/anat/sub-a+b_ses-1+2_acq-x+y_T1w.nii.gz"
    plain_dataset(project.folder / "bids", {image: small_head(), t1w("c"): small_head(1)})
    dataset = {"source": "bids", "participants": ["sub-a+b"], "sessions": ["1+2"]}
    ended = project.snakemake(*project.configure(dataset=dataset, tool=BET), path=STAND_INS)
    assert ended.code == 0, ended.output
    made = project.results / "derivatives" / image.replace("_T1w", "_desc-brain_mask")
    assert made.is_file()
    assert [row["participant"] for row in project.table("group/group.tsv")] == ["sub-a+b"]
    assert len(list((project.results / "figures" / "mosaics").glob("*a+b*.png"))) == 1
    assert "sub-a+b" in (project.results / "report.html").read_text()
    assert project.leftovers() == []
    again = project.snakemake(*project.configure(dataset=dataset, tool=BET), path=STAND_INS)
    assert "Nothing to be done" in again.output
