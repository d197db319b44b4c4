"""The source: real DataLad datasets and plain folders by path; and what a power cut has left of a clone."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from clones import IMAGE, ONCE, SETTINGS, cloned, fetched
from conftest import nightly
from neurotier.analysis.rehearsal.description import text_of
from neurotier.analysis.staging import stage_in
from neurotier.containers.reference import read_reference
from neurotier.containers.run import further_binds
from neurotier.containers.store import examine_cache
from neurotier.core.errors import InputError, KilledError, NeurotierError, SourceError
from neurotier.core.settings import DemoSettings
from neurotier.dataset.contents import content_of, drop_images, get_images, is_present
from neurotier.dataset.index import index_dataset
from neurotier.dataset.source import Dataset, fault_of, hazard, is_whole, local_folder, require_sites
from neurotier.demo.dataset import head_of
from neurotier.run.preconditions import check_filter_file
from support import NOBODY, by_an_ordinary_user, git, plain_dataset, quiet, script, small_head, t1w


@pytest.mark.skipif(os.getuid() != 0, reason="giving a repository to another user needs root")
def test_a_source_of_another_user_is_said_with_what_git_asks_for(demo_copy: Path, tmp_path: Path) -> None:
    """Git refuses such a repository until it is listed as safe: the network has nothing to do with it."""
    os.chown(demo_copy / ".git", NOBODY, NOBODY)
    os.chown(demo_copy, NOBODY, NOBODY)
    with pytest.raises(SourceError, match="detected dubious ownership in repository at ") as raised:
        cloned(demo_copy, tmp_path)
    assert f"git config --global --add safe.directory {demo_copy}/.git" in str(raised.value)
    assert "could not be read" not in str(raised.value).lower()


def test_a_site_that_the_source_does_not_have_is_said(demo_source: Path, tmp_path: Path) -> None:
    with pytest.raises(NeurotierError, match="the dataset has no site 'SiteC'; did you mean"):
        cloned(demo_source, tmp_path, sites=["SiteC"])


def test_a_participant_that_is_a_sub_dataset_and_gone_is_said_once_and_fails_who_asks_for_it(tmp_path: Path) -> None:
    folder = plain_dataset(tmp_path, {t1w("01"): small_head()})
    (folder / "sub-02").mkdir()
    dataset = Dataset("x", folder, "datalad", {"": {}}, {"sub-02": "is away"})
    require_sites(dataset, ["01", "sub-03"])
    with pytest.raises(SourceError, match=r"'sub-02': .* or dataset\.participants"):
        require_sites(dataset, ["02"])
    for participants, skipped in ([], ["'sub-02'"]), (["01"], []):
        asking = dataclasses.replace(SETTINGS, sites=[], participants=participants)
        assert list(index_dataset(dataset, asking, None, quiet).skipped) == skipped


def test_sites_of_a_folder_that_are_links_out_of_it_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study, store = tmp_path / "study", plain_dataset(tmp_path / "store/NYU", {t1w("01"): small_head()})
    plain_dataset(study / "UPSM", {t1w("01"): small_head()})
    leads = {"NYU": store, "Gone": tmp_path / "away/Gone", "Circle": Path("Circle"), "Lost": Path("UPSM/Lost")}
    no_sites = {"README.md": tmp_path / "away", "derivatives": store, "home": tmp_path, "Same": Path("UPSM")}
    for name, target in (leads | no_sites).items():
        (study / name).symlink_to(target)
    found, said = cloned(study, tmp_path, sites=[]), list[str]()
    assert (list(found.sites), set(found.unreachable)) == (["Same", "UPSM"], set(leads))
    assert "name its folder in dataset.links_to" in found.unreachable["NYU"]
    with pytest.raises(SourceError, match="'NYU': is a link that leads out of the dataset"):
        require_sites(cloned(study, tmp_path, said.append, sites=["UPSM", "NYU"]), [])
    assert [line.partition(":")[0] for line in said] == ["'NYU' cannot be reached"]
    with pytest.raises(SourceError, match="NYU: cannot be reached: is a link that leads out"):
        cloned(study, tmp_path, sites=["NYU"])
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in (str(store), "~/store"):
        assert cloned(study, tmp_path, sites=["NYU"], links_to=[folder]).unreachable == {}


@pytest.mark.parametrize(
    "read",
    [
        local_folder,
        lambda path: examine_cache("cache", path),
        lambda path: further_binds([path]),
        check_filter_file,
        lambda path: read_reference(path, "app.image"),
        lambda path: read_reference(f"datalad:{path}#image", "app.image"),
        lambda path: head_of(DemoSettings(path, 1.0, 0)),
        lambda path: text_of(f"{path}.yaml"),
    ],
)
def test_a_path_in_the_home_of_nobody_is_not_there(read: Callable[[str], object]) -> None:
    with pytest.raises(NeurotierError, match="~nobody-of-that-name/x"):
        read("~nobody-of-that-name/x")


SITES = "import sys, pathlib, neurotier.dataset.source as s; print(s.plain_sites(pathlib.Path(sys.argv[1]), []))"


def test_site_of_a_folder_that_may_not_be_read_is_said(tmp_path: Path) -> None:
    plain_dataset(tmp_path / "UPSM", {t1w("01"): small_head()})
    for name in ("NYU", "lost+found", ".Trash"):
        plain_dataset(tmp_path / name, {t1w("01"): small_head()}).chmod(0)
    assert by_an_ordinary_user(SITES, tmp_path) == "{'NYU': 'cannot be read', 'UPSM': ''}\n"


def test_a_plain_folder_has_no_version(tmp_path: Path) -> None:
    source = plain_dataset(tmp_path / "bids", {t1w("01"): small_head()})
    with pytest.raises(InputError, match=r"^dataset\.version: a plain folder has no versions; leave it out$"):
        cloned(source, tmp_path, sites=[], version="v1")


def test_a_tier_without_symbolic_links_holds_no_clone(tmp_path: Path, demo_source: Path) -> None:
    """There git-annex makes commits of its own, which the source does not have."""
    git(tmp_path, "clone", "--quiet", str(demo_source / "SiteA"), "site")
    git(tmp_path / "site", "config", "annex.crippledfilesystem", "true")
    assert hazard(tmp_path / "site").startswith("its tier has no symbolic links or permissions, ")


def test_dataset_with_raw_data_below_sourcedata_alone_has_no_sites(demo_copy: Path, tmp_path: Path) -> None:
    (demo_copy / "sourcedata").mkdir()
    git(demo_copy, "rm", "SiteB")
    git(demo_copy, "mv", "SiteA", "sourcedata/raw")
    git(demo_copy, "commit", "-m", "as YODA has it")
    with pytest.raises(InputError, match=r"neither participants nor sites; name .*: sourcedata/raw"):
        cloned(demo_copy, tmp_path, sites=[])


def commit_version(dataset: Path, name: str) -> None:
    """Commit and tag a version of a dataset, which its file ``CHANGES`` names."""
    (dataset / "CHANGES").write_text(name)
    git(dataset, "add", "CHANGES")
    git(dataset, "commit", "-m", name)
    git(dataset, "tag", name)


def test_versions_have_clones_of_their_own_and_one_that_somebody_moved_is_refused(
    demo_copy: Path, tmp_path: Path
) -> None:
    """Results at v1 must not find v2 in their clone: because other results wanted that, or somebody checked it out."""
    git(demo_copy, "tag", "v1")
    commit_version(demo_copy, "v2")
    clones = {version: cloned(demo_copy, tmp_path, version=version).path for version in ("v1", "v2", None)}
    assert len({*clones.values()}) == 3
    assert {name: (path / "CHANGES").exists() for name, path in clones.items()} == {"v1": False, "v2": True, None: True}
    clone = clones["v1"]
    git(clone, "checkout", "v2")
    with pytest.raises(SourceError, match=rf"clone {clone}: is not at dataset.version 'v1' any more; check it out"):
        cloned(demo_copy, tmp_path, version="v1")
    assert (clone / "CHANGES").exists(), "it may be wanted there"
    git(clone, "checkout", "v1")
    assert cloned(demo_copy, tmp_path, version="v1").path == clone


@pytest.mark.parametrize("version", ["HEAD~1", "@~1"])
def test_a_version_that_is_counted_from_the_clones_own_is_counted_once(
    demo_copy: Path, tmp_path: Path, version: str
) -> None:
    """Another results folder, or a job that misses a site, moved the clone by one more."""
    for name in ("v1", "v2"):
        commit_version(demo_copy, name)
    clones = [cloned(demo_copy, tmp_path, version=version).path for _ in range(2)]
    assert [(clone / "CHANGES").read_text() for clone in clones] == ["v1", "v1"]


def test_a_site_on_an_adjusted_branch_is_installed_at_the_commit_that_is_recorded(
    demo_copy: Path, tmp_path: Path
) -> None:
    """As on a disk without links; its own branch has that commit, and DataLad takes the dataset for clean."""
    recorded = git(demo_copy / "SiteA", "rev-parse", "HEAD")
    git(demo_copy / "SiteA", "annex", "adjust", "--unlock")
    dataset = cloned(demo_copy, tmp_path)
    assert dataset.sites["SiteA"]["version"] == recorded
    assert fetched(dataset) == 1


def unlocked(source: Path, folder: Path) -> Dataset:
    """The clone of a source in which :data:`IMAGE` is an unlocked file."""
    git(source / "SiteA", "annex", "unlock", IMAGE.removeprefix("SiteA/"))
    for repository in (source / "SiteA", source):
        git(repository, "commit", "-a", "-m", "unlock")
    return cloned(source, folder)


def test_unlocked_image_is_fetched(demo_copy: Path, tmp_path: Path) -> None:
    dataset, size_bytes = unlocked(demo_copy, tmp_path), (demo_copy / IMAGE).stat().st_size
    assert dataset.sites["SiteA"]["url"].startswith("urn:uuid:"), "it has no address"
    assert len(dataset.sites["SiteA"]["version"]) == 40
    assert not is_present(dataset.path, IMAGE)
    assert content_of(dataset.path, IMAGE).size_bytes == size_bytes
    before, pointer = index_dataset(dataset, SETTINGS, None, quiet), (dataset.path / IMAGE).read_bytes()
    assert fetched(dataset) == 1
    assert is_present(dataset.path, IMAGE)
    assert (dataset.path / IMAGE).stat().st_size == size_bytes
    assert index_dataset(dataset, SETTINGS, None, quiet) == before, "or all would be analysed again"
    for content in (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n", pointer):
        (dataset.path / IMAGE).write_bytes(content)
        with pytest.raises(SourceError, match="its content is not on the dataset tier"):
            stage_in(dataset.path, [IMAGE], tmp_path / "staged", 1 << 30)
    assert not is_present(dataset.path, IMAGE), "a pointer, as git-annex leaves it at times if two of it work at once"
    assert fetched(dataset) == 1
    assert (dataset.path / IMAGE).read_bytes() == (demo_copy / IMAGE).read_bytes()
    (dataset.path / IMAGE).unlink()
    found = index_dataset(dataset, SETTINGS, None, quiet).images
    assert [(image.path, image.content) for image in found] == [(image.path, image.content) for image in before.images]
    assert fetched(dataset) == 1, "git-annex has it away for a moment, for another run"
    assert (dataset.path / IMAGE).read_bytes() == (demo_copy / IMAGE).read_bytes()


# Clones and contents that a power cut left half on the device: found, and had again.


@pytest.mark.parametrize("left_bytes", [0, 1000])
def test_content_of_another_size_than_its_key_is_fetched_again(
    demo_source: Path, tmp_path: Path, left_bytes: int
) -> None:
    dataset = cloned(demo_source, tmp_path, get_attempts=1)
    assert fetched(dataset) == 1
    whole, content = content_of(dataset.path, IMAGE), (dataset.path / IMAGE).resolve()
    content.chmod(0o644)
    os.truncate(content, left_bytes)
    assert content_of(dataset.path, IMAGE).is_damaged
    said: list[str] = []
    assert fetched(dataset, said.append) == 1
    assert f"{left_bytes} of {whole.size_bytes} bytes are here: fetched again" in said[0]
    assert (dataset.path / IMAGE).read_bytes() == (demo_source / IMAGE).read_bytes()


@pytest.mark.parametrize("site", ["SiteA", ""])
@pytest.mark.parametrize("name", ["HEAD", "an object", *nightly("annex/index", "index", "config", "no object")])
def test_clone_that_git_cannot_use_is_cloned_anew(demo_source: Path, tmp_path: Path, name: str, site: str) -> None:
    dataset = cloned(demo_source, tmp_path, get_attempts=1)
    repository = dataset.path / site
    assert not fault_of(repository)
    tree = git(repository, "rev-parse", "HEAD^{tree}")
    for pack in (repository / ".git/objects/pack").glob("*.pack"):  # so that its objects are files
        with pack.rename(tmp_path / pack.name).open("rb") as packed:
            subprocess.run(["git", "unpack-objects", "-q"], cwd=repository, stdin=packed, check=True)
    file = repository / ".git" / name
    if "object" in name:
        file = repository / ".git/objects" / tree[:2] / tree[2:]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    if name != "no object":
        file.touch()
    assert fault_of(repository)
    said: list[str] = []
    assert cloned(demo_source, tmp_path, said.append, get_attempts=1) == dataset
    assert not fault_of(repository)
    assert any("cloned anew" in line or "installing 1" in line for line in said), said
    assert fetched(dataset) == 1


def test_a_database_of_git_annex_that_was_emptied_is_made_anew(demo_copy: Path, tmp_path: Path) -> None:
    """Without it git-annex fetches no unlocked image."""
    dataset = unlocked(demo_copy, tmp_path)
    assert fetched(dataset) == 1
    assert drop_images(dataset.path, [IMAGE]) == ""
    (dataset.path / "SiteA/.git/annex/keysdb/db").write_bytes(b"")
    assert not fault_of(dataset.path / "SiteA")
    assert fetched(dataset) == 1
    assert (dataset.path / IMAGE).read_bytes() == (demo_copy / IMAGE).read_bytes()
    assert drop_images(dataset.path, [IMAGE]) == "", "or its tier would fill"


GIT = """\
{git} "$@"
code=$?
for word; do [ "$word" != clone ] || cloned=yes; last=$word; done
[ -z "$cloned" ] || [ -e {spoiled} ] || [ "${{last%{name}}}" = "$last" ] || rm "$last"/.git/index >{spoiled}
exit $code
"""
"""A git that leaves a clone as one does that is ended by Ctrl-C at its end, once; DataLad does not notice."""


@pytest.mark.parametrize("name", [".partial", "/SiteA"])
def test_a_clone_whose_git_was_ended_is_made_again(
    demo_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    tools, spoiled = tmp_path / "tools", tmp_path / "spoiled"
    script(tools / "git", GIT.format(git=shutil.which("git"), spoiled=spoiled, name=name))
    monkeypatch.setenv("PATH", str(tools), prepend=os.pathsep)
    with pytest.raises(SourceError, match="was ended while it was cloned"):
        cloned(demo_source, tmp_path, get_attempts=1)
    assert spoiled.exists()
    dataset = cloned(demo_source, tmp_path, get_attempts=1)
    assert all(is_whole(dataset.path / site) for site in ("", "SiteA"))


@pytest.mark.parametrize("limit", ["ulimit -v 60000", '[ "$3" != fsck ] || kill -9 $$'])
def test_a_repository_for_which_git_has_no_memory_is_not_taken_for_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """A healthy clone would be set aside, and all of its images fetched again."""
    (tmp_path / "large").write_bytes(os.urandom(64 << 20))
    for words in ("init", "-c core.compression=0 add large", "commit -m large"):
        git(tmp_path, *words.split())
    assert not fault_of(tmp_path)
    script(tmp_path / "tools/git", f'{limit}\nexec {shutil.which("git")} "$@"')
    monkeypatch.setenv("PATH", str(tmp_path / "tools"), prepend=os.pathsep)
    with pytest.raises(KilledError, match="git was killed, or got no memory; see the limits"):
        fault_of(tmp_path)


def test_source_of_the_user_is_never_removed(demo_copy: Path, tmp_path: Path) -> None:
    """The source is broken, and not the clone."""
    cloned(demo_copy, tmp_path)
    (demo_copy / "SiteA/.git/HEAD").write_text("")
    cloned(demo_copy, tmp_path)
    assert (demo_copy / IMAGE).exists()


def test_a_name_in_a_key_is_not_taken_for_a_size(tmp_path: Path) -> None:
    """A key without a size ends in the name, here of site ``s01``: the good copy would be dropped as damaged."""
    git(tmp_path, "init")
    git(tmp_path, "annex", "init")
    (tmp_path / "head").write_bytes(b"x" * 100)
    key = "URL--https&c%%x.org%ds-s01-T1w.nii.gz"
    git(tmp_path, "annex", "setkey", key, "head")
    git(tmp_path, "annex", "fromkey", "--force", key, "T1w.nii.gz")
    content = content_of(tmp_path, "T1w.nii.gz")
    assert (content.key[:5], content.size_bytes, content.is_damaged) == ("URL--", 100, False)
    assert get_images(tmp_path, ["T1w.nii.gz"], ONCE, quiet) == 0
    assert (tmp_path / "T1w.nii.gz").exists()
