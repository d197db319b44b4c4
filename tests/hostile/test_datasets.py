"""Datasets made to harm: links to files of the host, loops, FIFOs, names and addresses that are options or commands.

The host's files hold a word that must appear nowhere: not in results, logs and the report, not on any tier.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import nightly
from container_images import Engine, make_tiny
from support import ENVIRONMENT, Ended, Project, datalad, git, plain_dataset, read_json, script, small_head, t1w

WORD = "canary-5d1e"


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
        t1w("up"): Path(os.path.relpath(host / "secret.nii.gz", dataset / "sub-up/anat")),
        t1w("system"): Path("/etc/passwd"),
        t1w("zero"): Path("/dev/zero"),
        t1w("git"): Path("../../.git/config"),
        t1w("circle"): Path("sub-circle_T1w.nii.gz"),
        "sub-circle/circle": Path("circle"),
        t1w("through"): Path("../../sub-circle/circle/sub-through_T1w.nii.gz"),
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
    leaving |= dict.fromkeys(("sub-circle", "sub-through"), "is a link that leads in a circle")
    return leaving | {"sub-git": "is a link that leads out"}


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
    assert f"1 of {len(reasons) + 1} participants done, {len(reasons)} failed" in ended.output, ended.output
    for participant, reason in reasons.items():
        (line,) = ended.lines(f"failed  {participant}: ")
        assert reason in line
        assert project.failure(participant)["exit_code"] == 65
    skipped = (project.results / "index/skipped.tsv").read_text()
    assert "'sub-folder'\tis a link that leads out of the dataset" in skipped
    assert "'sub-anat/anat'\tis a link that leads out of the dataset" in skipped
    assert "'participants.tsv'\tis a link that leads out of the dataset" in skipped
    assert project.leftovers() == []
    assert_nowhere(project.folder)


@pytest.mark.nightly
def test_links_of_a_datalad_dataset_lead_nowhere_else(project: Project, host: Path, tmp_path: Path) -> None:
    study = tmp_path / "study"
    datalad(tmp_path, "create", study)
    plain_dataset(study, {t1w("good"): small_head()})
    reasons = add_links(study, host)
    datalad(study, "save")
    assert_only_good_is_done(project, project.fails(dataset=study, tool="bet"), reasons)


def test_links_of_a_plain_folder_lead_nowhere_else_and_nothing_blocks(project: Project, host: Path) -> None:
    bids = plain_dataset(project.folder / "bids", {t1w("good"): small_head(), t1w("fifo"): b"", t1w("device"): b""})
    reasons = add_links(bids, host) | {"sub-fifo": "is a FIFO, and only files are read"}
    (bids / t1w("fifo")).unlink()
    os.mkfifo(bids / t1w("fifo"))
    os.mkfifo(bids / "sub-good/anat/layout_config.json")  # pybids would read it
    if os.getuid() == 0:
        (bids / t1w("device")).unlink()
        os.mknod(bids / t1w("device"), 0o020600, os.makedev(1, 5))  # as /dev/zero
        reasons["sub-device"] = "is a device, and only files are read"
    else:
        shutil.rmtree(bids / "sub-device")
    assert_only_good_is_done(project, project.fails(tool="bet"), reasons)


def index(project: Project, *links_to: Path, results: str = "results", **sections: Any) -> dict[str, str]:
    """Index the plain folder; each file that is listed with its size."""
    dataset = {"source": "bids", "links_to": [str(path) for path in links_to]}
    project.succeeds(
        f"{results}/index/images.tsv",
        "--sdm",
        "apptainer",
        dataset=dataset,
        results=results,
        **{"tool": "bet", **sections},
    )
    return {row["path"]: row["size_bytes"] for row in project.table(f"../{results}/index/images.tsv")}


@pytest.mark.nightly
def test_files_of_an_app_are_listed_without_following_links_out(
    project: Project, tmp_path: Path, host: Path, engine: Engine
) -> None:
    bids = project.heads("good")
    add_links(bids, host)
    (bids / "sub-good/anat/sub-good_T1w.json").symlink_to(host / "README")
    sizes = index(project, app={"image": make_tiny(engine, tmp_path), "suffixes": []})
    assert {path.partition("/")[0] for path in sizes} == {
        *("sub-file", "sub-up", "sub-system", "sub-zero", "sub-git", "sub-circle", "sub-through", "sub-good")
    }
    assert [path for path, size in sizes.items() if size != "n/a"] == [t1w("good")]  # others fail by name
    assert_nowhere(project.results)


def test_sites_with_links_and_tables_that_are_none(project: Project, host: Path) -> None:
    """Each of 30 folders leads to all others: by every way there would be more than 10^30 of them."""
    bids = project.folder / "bids"
    for site in ("FIFO", "Large", "Nul", "Many"):
        plain_dataset(bids / site, {t1w("01"): small_head()})
    os.mkfifo(bids / "FIFO/participants.tsv")
    with (bids / "Large/participants.tsv").open("wb") as file:
        file.truncate(1 << 40)
    (bids / "Nul/participants.tsv").write_bytes(b"participant_id\n" + b"\0" * 200_000)
    for one in range(30):
        (bids / f"Many/sub-01/ses-{one}").mkdir()
        for other in range(30):
            (bids / f"Many/sub-01/ses-{one}/to-{other}").symlink_to(f"../ses-{other}")
    (bids / "Host").symlink_to(host)
    sites = ["FIFO", "Large", "Many", "Nul"]
    assert sorted(index(project)) == [f"{site}/{t1w('01')}" for site in sites]
    skipped = project.columns("item", "index/skipped.tsv")
    assert {"'Host'", *(f"'{site}/participants.tsv'" for site in ("FIFO", "Large", "Nul"))} <= set(skipped)
    assert f"Host/{t1w('folder')}" in index(project, host, results="trusted")


def test_folder_made_of_links_is_analysed_where_its_store_is_named(project: Project, tmp_path: Path) -> None:
    store = plain_dataset(tmp_path / "store", {t1w("01"): small_head(), t1w("02"): small_head()})
    bids = project.heads("03")
    (bids / "sub-01/anat").mkdir(parents=True)
    (bids / t1w("01")).symlink_to(store / t1w("01"))
    (bids / "sub-02").symlink_to(store / "sub-02")
    size = str((store / t1w("01")).stat().st_size)
    assert index(project) == {t1w("01"): "n/a", t1w("03"): size}
    assert index(project, store, results="trusted") == dict.fromkeys(map(t1w, ("01", "02", "03")), size)
    assert "'sub-02'" in project.columns("item", "index/skipped.tsv")


# Options and commands


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file that appears if ssh is called, or a command of an address is run; git is told to allow everything."""
    mark, programs = tmp_path / "ran", tmp_path / "bin"
    script(programs / "ssh", f'echo "$@" >> {mark}\nexit 255')
    monkeypatch.setitem(ENVIRONMENT, "PATH", f"{programs}{os.pathsep}{ENVIRONMENT['PATH']}")
    monkeypatch.setitem(ENVIRONMENT, "GIT_ALLOW_PROTOCOL", "ext:file:git:http:https:ssh")
    yield mark
    assert not mark.exists(), mark.read_text()


ADDRESSES = [
    "ext::sh -c touch% MARK",
    "ssh://-oProxyCommand=touch${IFS}MARK/x",
    "--upload-pack=touch MARK",
    "ext::touch MARK",
    "ssh://me@-oProxyCommand=touch${IFS}MARK/x",
    "ssh://%2DoProxyCommand=touch${IFS}MARK/x",
    "ria+ssh://-oProxyCommand=touch${IFS}MARK/x#~a",
    "me@-oProxyCommand=touch${IFS}MARK:x",
    "-oProxyCommand=touch${IFS}MARK:x",
    "datalad-annex::?type=external&externaltype=x",
]


def clone(project: Project, source: Path | str, **keys: Any) -> Ended:
    """Clone a source."""
    dataset = {"source": source, "get_attempts": 1, **keys}
    return project.snakemake("results/index/dataset.json", dataset=dataset)


def commit(repository: Path, *what: str) -> None:
    git(repository, "commit", "--quiet", "-m", "hostile", *what)


def add_to_git(repository: Path, *paths: Path | str) -> None:
    """Have files, whose contents are in git itself, in the next commit of a dataset."""
    git(repository, "-c", "annex.largefiles=nothing", "add", "--force", *map(str, paths))
    commit(repository)


@pytest.mark.parametrize("address", [ADDRESSES[0], *nightly(*ADDRESSES[1:])])
def test_source_is_never_an_option_or_a_command(project: Project, ran: Path, address: str) -> None:
    clone(project, address.replace("MARK", str(ran))).failed()


@pytest.mark.parametrize("key", ["url", *nightly("candidate", "datalad-url", "substitute")])
def test_addresses_of_subdatasets_are_never_options_or_commands(
    project: Project, demo_copy: Path, ran: Path, key: str
) -> None:
    """A sub-dataset for each address cannot be reached; the others are there."""
    revision = git(demo_copy, "rev-parse", "HEAD:SiteB")
    sites = {f"Hostile{number}": address.replace("MARK", str(ran)) for number, address in enumerate(ADDRESSES)}
    for number, (site, address) in enumerate(sites.items()):
        own = {"path": site, "url": f"./{site}"} | ({key: address} if key.endswith("url") else {})
        for name, value in own.items():
            git(demo_copy, "config", "--file", ".gitmodules", f"submodule.{site}.{name}", value)
        git(demo_copy, "update-index", "--add", "--cacheinfo", f"160000,{revision},{site}")
        if key == "candidate":
            name, value = f"datalad.get.subdataset-source-candidate-{100 + number}x", address
            git(demo_copy, "config", "--file", ".datalad/config", name, value)
        elif key == "substitute":
            name, value = f"datalad.clone.url-substitute.x{number}", f"|.*{site}|{address}"
            git(demo_copy, "config", "--file", ".datalad/config", name, value)
    git(demo_copy, "add", ".gitmodules", ".datalad")
    commit(demo_copy)
    ended = clone(project, demo_copy)
    if ended.code == 0 or key.endswith("url"):  # the others are for every sub-dataset
        found = read_json(project.results / "index/dataset.json")
        assert found["unreachable"].keys() == sites.keys()
        assert key == "substitute" or all("its address" in reason for reason in found["unreachable"].values()), found


def test_link_in_place_of_gitmodules_is_refused(project: Project, demo_copy: Path, tmp_path: Path) -> None:
    shutil.move(demo_copy / ".gitmodules", tmp_path / "elsewhere")
    (demo_copy / ".gitmodules").symlink_to(tmp_path / "elsewhere")
    git(demo_copy, "add", "--all", ".gitmodules")
    commit(demo_copy)
    clone(project, demo_copy).failed()


@pytest.mark.parametrize("asked", ["ephemeral", *nightly("shared-0777", "auto")])
def test_a_dataset_does_not_say_how_its_clone_is_made(project: Project, demo_copy: Path, asked: str) -> None:
    """An ephemeral clone would be its source's annex: images dropped here would be gone there."""
    git(demo_copy, "config", "--file", ".datalad/config", "datalad.clone.reckless", asked)
    commit(demo_copy, "--all")
    clone(project, demo_copy).succeeded()
    (annex,) = project.folder.glob("neurotier-*/datasets/[!.]*/SiteA/.git/annex")
    assert not annex.is_symlink()
    assert annex.stat().st_mode & 0o022 == 0
    config = git(annex.parent.parent, "config", "--list")
    assert "reckless" not in config
    assert "annex.hardlink" not in config


@pytest.mark.parametrize(
    "version", ["--upload-pack=touch MARK", *nightly("-f", "--", "--exec=touch MARK", "-bx", "a b")]
)
def test_version_is_never_an_option(project: Project, demo_source: Path, ran: Path, version: str) -> None:
    ended = clone(project, demo_source, version=version.replace("MARK", str(ran))).failed()
    ended.says("has no branch, tag or commit")
    assert not [path for path in project.folder.glob("neurotier-*/datasets/*") if path.is_dir()]


EVIL_HOOKS = ["reference-transaction", "post-checkout", "post-index-change", "pre-auto-gc"]
ANNEX_HOOK = "thawcontent-annex"


@pytest.mark.parametrize("nested", [False, *nightly(True)])
def test_the_repository_of_a_source_on_this_machine_runs_nothing(
    project: Project, demo_copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nested: bool
) -> None:
    """A dataset unpacked from an archive is this user's, and so are its hooks and its ``.git/config``."""
    (tmp_path / "gitconfig").write_text("[clone]\n defaultRemoteName = upstream\n")  # by which it is not asked for
    monkeypatch.setitem(ENVIRONMENT, "GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    mark, source = tmp_path / "ran", demo_copy if nested else demo_copy / "SiteA"
    evil = script(tmp_path / "evil", f'echo "$0 $*" >>{mark}')
    hooks = demo_copy / "SiteA/.git/hooks"
    for name in EVIL_HOOKS:
        (hooks / name).unlink(missing_ok=True)
        (hooks / name).symlink_to(evil)
    commands = ("core.fsmonitor", "core.sshCommand", "annex.freezecontent-command", "annex.thawcontent-command")
    for key in (*commands, "annex.secure-erase-command", "uploadpack.packObjectsHook", "diff.external"):
        git(demo_copy / "SiteA", "config", key, str(evil))
    dataset = {"source": source, "drop": True, **({"sites": ["SiteA"]} if nested else {})}
    project.succeeds("participants", dataset=dataset, tool="bet")
    assert not mark.exists(), mark.read_text()
    (hooks / ANNEX_HOOK).symlink_to(evil)
    for folder in project.folder.glob("neurotier-*/datasets"):
        shutil.rmtree(folder)
    project.fails("participants", "--forceall").says(
        f"git-annex would run the hook {hooks / ANNEX_HOOK} of its repository"
    )
    assert not mark.exists(), mark.read_text()


EVIL = "externaltype=x/evil type=external"
"""Has git-annex start a file of the dataset."""


@pytest.fixture
def evil_site(demo_copy: Path, tmp_path: Path) -> Iterator[Path]:
    """A site with a program and, as a folder of its own, a repository with a hook; none of them may run."""
    mark, site = tmp_path / "ran", demo_copy / "SiteA"
    script(site / "git-annex-remote-x/evil", f"echo $0 >>{mark}")
    git(site, "init", "--quiet", "--bare", "bare")
    script(site / "bare/hooks/pre-init-annex", f"echo $0 >>{mark}")
    for folder in ("objects", "refs"):
        (site / "bare" / folder / "kept").touch()
    add_to_git(site, "git-annex-remote-x", "bare")
    yield site
    assert not mark.exists(), mark.read_text()


def write_remotes(site: Path, words: str) -> None:
    """Have git-annex's branch ask for a special remote."""
    tree = git(site, "rev-parse", "--abbrev-ref", "HEAD")
    git(site, "checkout", "--quiet", "git-annex")
    line = f"11111111-1111-1111-1111-111111111111 {words} encryption=none name=x timestamp=1795742480s\n"
    (site / "remote.log").write_bytes(line.encode())
    git(site, "add", "remote.log")
    commit(site)
    git(site, "checkout", "--quiet", tree)


def test_a_dataset_cannot_have_datalad_send_stored_passwords(project: Project, demo_copy: Path) -> None:
    """Its providers name both the address and the credential; DataLad's own special remote looks at them."""
    site = demo_copy / "SiteA"
    providers = site / ".datalad/providers/evil.cfg"
    providers.parent.mkdir(parents=True)
    providers.write_text("[provider:evil]\nurl_re = http://evil/.*\nauthentication_type = http_basic_auth\n")
    add_to_git(site, providers)
    write_remotes(site, "autoenable=true externaltype=datalad type=external")
    clone(project, site).failed().says("its .datalad/providers could have DataLad send your passwords")


WORDS = [
    f"autoenable=true {EVIL}",
    f"autoenable=true\v{EVIL}".replace(" ", "\v"),
    "autoenable=true externaltype=ora\x1f/evil type=external",
    f"autoenable=true\u2003{EVIL}",
    f"autoenable=false autoenable=true {EVIL}",
    f"autoenable=&116;rue {EVIL}",
    "autoenable=true type= type=rclone",
    "autoenable=true location=bare type=git",
]


@pytest.mark.parametrize(("words", "nested"), [(WORDS[0], False), *nightly(*((words, True) for words in WORDS))])
def test_special_remotes_of_a_dataset_start_no_program(
    project: Project, evil_site: Path, words: str, nested: bool
) -> None:
    """git-annex starts ``git-annex-remote-NAME`` in each clone; the name may lead to a file of the dataset."""
    write_remotes(evil_site, words)
    if nested:
        commit(evil_site.parent, "SiteA")
    ended = clone(project, evil_site.parent if nested else evil_site)
    (line, *_) = ended.lines("its special remotes would have git-annex start ")
    assert "`git annex enableremote NAME autoenable=false`" in line
    assert (ended.code == 0) == nested, "the other sites are there"


@pytest.mark.parametrize("hostile", ["git-annex", *nightly("origin/git-annex", "pre-init-annex", "of its source")])
def test_git_annex_does_not_begin_in_the_source(
    project: Project, evil_site: Path, tmp_path: Path, hostile: str
) -> None:
    """A clone by git alone: git-annex would make it its own, and enable special remotes there."""
    write_remotes(evil_site, f"autoenable=true {EVIL}")
    source = tmp_path / "cloned"
    git(tmp_path, "clone", "--quiet", str(evil_site), str(source))
    git(source, "branch", "git-annex", "origin/git-annex" if hostile == "git-annex" else "origin/git-annex~")
    has_hook, first = hostile in ("pre-init-annex", "of its source"), source
    if has_hook:
        git(source, "update-ref", "refs/remotes/origin/git-annex", "git-annex")
        shutil.copy(source / "bare/hooks/pre-init-annex", source / ".git/hooks/pre-init-annex")
    if hostile == "of its source":
        source = tmp_path / "again"
        git(tmp_path, "clone", "--quiet", str(first), str(source))
        git(source, "branch", "git-annex", "origin/git-annex")
    ended = clone(project, source)
    assert (ended.code == 0) == (hostile == "origin/git-annex"), ended.output
    assert not has_hook or ended.lines(f"git-annex would run the hook {first}/.git/hooks/pre-init-annex"), ended.output
    assert "annex.uuid" not in git(source, "config", "--list") + git(first, "config", "--list")


@pytest.mark.parametrize(
    "words",
    [
        "autoenable=true externaltype=ora type=external url=ria+file:///nowhere archive-id=x",
        *nightly(
            "autoenable=true type=S3 bucket=b host=localhost port=1 public=yes publicurl=http://localhost:1",
            "autoenable=true type=git location=http://localhost:1/x",
            f"autoenable=false {EVIL}",
            EVIL,
        ),
    ],
)
def test_special_remotes_that_start_nothing_of_a_dataset_are_accepted(
    project: Project, evil_site: Path, words: str
) -> None:
    write_remotes(evil_site, words)
    clone(project, evil_site).succeeded()
    (made,) = project.folder.glob("neurotier-*/datasets/[!.]*/.git")
    assert (made / "annex").is_dir()
    assert words in git(made.parent, "show", "git-annex:remote.log")


def test_site_whose_owner_has_done_what_is_told_is_installed(project: Project, demo_copy: Path) -> None:
    site = demo_copy / "SiteA"
    git(site, "annex", "initremote", "x", "type=hook", "hooktype=h", "encryption=none", "autoenable=true")
    clone(project, demo_copy).says("its special remotes would have git-annex start 'hook'")
    git(site, "annex", "enableremote", "x", "autoenable=false")
    (project.results / "index/dataset.json").unlink()
    clone(project, demo_copy).succeeded()
    assert not read_json(project.results / "index/dataset.json")["unreachable"]


@pytest.mark.parametrize("site", ["SiteA", *nightly("")])
def test_clone_that_was_made_before_programs_were_refused_is_made_anew(
    project: Project, demo_copy: Path, site: str
) -> None:
    clone(project, demo_copy).succeeded()
    (made,) = project.folder.glob("neurotier-*/datasets/[!.]*/.datalad")
    git(made.parent / site, "config", "remote.x.annex-externaltype", "x/evil")
    git(made.parent / "SiteB", "config", "remote.x.annex-externaltype", "ora")
    clone(project, demo_copy).succeeded().says("would have git-annex start 'x/evil', and is cloned again")
    (project.results / "index/dataset.json").unlink()
    clone(project, demo_copy).succeeded()
    assert "x/evil" not in (made.parent / site / ".git/config").read_text()
    assert not site or "annex-externaltype = ora" in (made.parent / "SiteB/.git/config").read_text()


# Labels


def test_label_with_a_plus_runs_through_the_whole_workflow(project: Project) -> None:
    """``+`` is allowed in labels since BIDS 1.11."""
    image = "sub-a+b/ses-1+2/anat/sub-a+b_ses-1+2_acq-x+y_T1w.nii.gz"
    plain_dataset(project.folder / "bids", {image: small_head(), t1w("c"): small_head(1)})
    dataset = {"source": "bids", "participants": ["sub-a+b"], "sessions": ["1+2"]}
    project.succeeds(dataset=dataset, tool="bet")
    made = project.derivatives / image.replace("_T1w", "_desc-brain_mask")
    assert made.is_file()
    assert project.columns("participant", "group/group.tsv") == ["sub-a+b"]
    assert len(list((project.results / "figures/mosaics").glob("*a+b*.png"))) == 1
    assert "sub-a+b" in project.page("report")
    assert project.leftovers() == []
    assert "Nothing to be done" in project.snakemake(dataset=dataset, tool="bet").output
