"""The source: real DataLad datasets, by path and over HTTP on loopback; and what a power cut has left of a clone."""

from __future__ import annotations

import dataclasses
import functools
import http.server
import itertools
import multiprocessing
import os
import pty
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from configured import settings_at
from conftest import missing, nightly
from neurotier.analysis.rehearsal.description import text_of
from neurotier.analysis.staging import stage_in
from neurotier.containers.reference import read_reference
from neurotier.containers.run import further_binds
from neurotier.containers.store import look_at
from neurotier.core.errors import InputError, NeurotierError, SourceError
from neurotier.core.private import private_folder
from neurotier.core.settings import DemoSettings
from neurotier.dataset import contents
from neurotier.dataset.commands import prepare_environment
from neurotier.dataset.contents import content_of, drop_images, get_images, is_present
from neurotier.dataset.index import index_dataset
from neurotier.dataset.source import Dataset, fault_of, is_whole, local_folder, obtain, refused, require_sites
from neurotier.demo.dataset import head_of
from neurotier.run.preconditions import check_filter_file
from support import NOBODY, PATIENCE_S, committed, git, plain_dataset, quiet, script, small_head, t1w, wait_for

IMAGE = "SiteA/sub-0099001/ses-1/anat/sub-0099001_ses-1_run-1_T1w.nii.gz"
SETTINGS = settings_at(dataset={"sites": ["SiteA"], "get_backoff_s": 0.2}).dataset
ONCE = dataclasses.replace(SETTINGS, get_attempts=1)

WAITING_S = 60.0
"""For what must happen sooner."""


class Server(http.server.ThreadingHTTPServer):
    """Serves a folder on loopback; ``down`` makes it answer 503 that many times for annexed contents.

    ``pages`` makes it send a page instead, as proxies do; ``pause_s`` makes it wait before it sends a content. After
    half of the first file whose path has ``stalls_at`` it says no more, and keeps the connection until ``over``.
    """

    down = 0
    pages = 0
    pause_s = 0.0
    served = 0
    stalls_at = ""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.over = threading.Event()


class Handler(http.server.SimpleHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        if self.server.stalls_at and self.server.stalls_at in self.path:
            self.server.stalls_at = ""
            self.send_half()
            return
        if "/annex/objects/" in self.path:
            if self.server.down > 0:
                self.server.down -= 1
                self.send_error(503)
                return
            self.server.served += 1
            time.sleep(self.server.pause_s)
            if self.server.pages > 0 or "Range" in self.headers:
                self.send_part()
                return
        super().do_GET()

    def send_half(self) -> None:
        """Send half of a content, and hold the connection."""
        whole = Path(self.translate_path(self.path)).read_bytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(whole)))
        self.end_headers()
        self.wfile.write(whole[: len(whole) // 2])
        self.server.over.wait(timeout=WAITING_S)
        self.close_connection = True

    def send_part(self) -> None:
        """Send a page in place of a content, or the content from where git-annex has it, if only the page."""
        content, status, below = b"<p>Log in</p>", 200, self.headers.get("Range", "bytes=0-")
        if self.server.pages > 0:
            self.server.pages -= 1
        else:
            whole = Path(self.translate_path(self.path)).read_bytes()
            content, status = whole[int(below.removeprefix("bytes=").removesuffix("-")) :], 206
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if status == 206:
            self.send_header("Content-Range", f"bytes {len(whole) - len(content)}-{len(whole) - 1}/{len(whole)}")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def web(demo_copy: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The demonstration dataset behind HTTP, as a public DataLad dataset is."""
    for repository in (demo_copy, demo_copy / "SiteA", demo_copy / "SiteB"):
        git(repository, "update-server-info")
    handler = functools.partial(Handler, directory=str(demo_copy))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")  # git-annex fetches from loopback only when told
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "annex.security.allowed-ip-addresses")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "127.0.0.1")
    with Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def address(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def cloned(source: Path | str, folder: Path, say: Callable[[str], None] = quiet, **changes: Any) -> Dataset:
    """A clone of a source, by settings that differ so from the usual ones."""
    settings = dataclasses.replace(SETTINGS, **changes)
    return obtain(settings, str(source), private_folder(folder) / "clones", say)


def test_contents_travel_over_http_and_outages_are_outlived(web: Server, tmp_path: Path) -> None:
    dataset = cloned(address(web), tmp_path)
    assert list(dataset.sites) == ["SiteA"]
    assert dataset.sites["SiteA"]["url"] == f"{address(web)}/SiteA"
    image = dataset.path / IMAGE
    size_bytes = content_of(dataset.path, IMAGE).size_bytes
    assert not image.exists()
    web.down = 2
    attempts: list[str] = []
    assert get_images(dataset.path, [IMAGE], SETTINGS, attempts.append) == 1
    assert image.stat().st_size == size_bytes
    assert web.served >= 1
    assert get_images(dataset.path, [IMAGE], SETTINGS, attempts.append) == 0
    drop_images(dataset.path, [IMAGE])
    assert not image.exists()


def test_a_clone_over_http_is_whole(web: Server, tmp_path: Path) -> None:
    """A web server without git's own protocol gives all objects but the empty tree, which git knows by itself."""
    made = cloned(address(web), tmp_path)
    assert cloned(address(web), tmp_path, pytest.fail) == made


def test_a_page_in_place_of_a_content_is_outlived(web: Server, tmp_path: Path) -> None:
    """git-annex takes it for the content's first bytes, and fetches the others; what it has then it removes, several
    times.
    """
    dataset = cloned(address(web), tmp_path)
    web.pages = 5
    attempts: list[str] = []
    assert get_images(dataset.path, [IMAGE], SETTINGS, attempts.append) == 1
    assert "erification of content failed" in attempts[0]
    assert (dataset.path / IMAGE).stat().st_size == content_of(dataset.path, IMAGE).size_bytes


def in_time(web: Server, work: Callable[[], Any]) -> Any:
    """What a function returns before the server gives up a connection that it holds."""
    with ThreadPoolExecutor(1) as beside:
        future = beside.submit(work)
        try:
            return future.result(timeout=WAITING_S)
        finally:
            web.over.set()


def test_a_clone_that_stalls_is_begun_again(web: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A firewall may forget a connection, whose ends then wait for each other; here for 1 s instead of 120."""
    monkeypatch.setenv("GIT_HTTP_LOW_SPEED_TIME", "1")
    web.stalls_at = "/.git/objects/"
    said: list[str] = []
    dataset = in_time(web, lambda: cloned(address(web), tmp_path, said.append))
    assert "attempt 1 of " in "".join(said)
    assert list(dataset.sites) == ["SiteA"]


def test_a_content_that_stalls_is_begun_again(web: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same of git-annex, for 1 s instead of 30."""
    dataset = cloned(address(web), tmp_path)
    monkeypatch.setattr(contents, "FETCHING", [word.replace("30s", "1s") for word in contents.FETCHING])
    web.stalls_at = "/annex/objects/"
    assert in_time(web, lambda: get_images(dataset.path, [IMAGE], SETTINGS, quiet)) == 1
    assert (dataset.path / IMAGE).stat().st_size == content_of(dataset.path, IMAGE).size_bytes


@pytest.mark.parametrize("name", ["store", "network store", "transfer already in progress"])
def test_contents_that_a_clone_does_not_reach_are_said_with_where_they_are(
    demo_copy: Path, tmp_path: Path, name: str
) -> None:
    """At once, though its description has words of failures that pass, or that are waited for as long as they last."""
    site, store = demo_copy / "SiteA", tmp_path / "store"
    store.mkdir()
    git(site, "annex", "initremote", "store", "type=directory", f"directory={store}", "encryption=none")
    git(site, "annex", "describe", "store", name)
    git(site, "annex", "move", "--to", "store", ".")
    dataset = cloned(demo_copy, tmp_path)
    where = f"a copy is in {name} .unless external, try `git annex enableremote` in the clone"
    with pytest.raises(SourceError, match=f"could not be fetched: not available; {where}"):
        get_images(dataset.path, [IMAGE], SETTINGS, pytest.fail)
    git(dataset.path / "SiteA", "annex", "enableremote", "store", f"directory={store}")
    assert get_images(dataset.path, [IMAGE], ONCE, quiet) == 1


def test_ssh_asks_nobody_at_a_terminal(tmp_path: Path) -> None:
    """Whether to trust a host that it does not know, nor for a password: a run waited for ever for the answer."""
    if not Path("/usr/sbin/sshd").exists():
        missing("an SSH server")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")], check=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    (tmp_path / "set").write_text(f"HostKey {tmp_path}/key\nPidFile none\nListenAddress 127.0.0.1:{port}\n")
    server = subprocess.Popen(["/usr/sbin/sshd", "-D", "-f", str(tmp_path / "set")], stderr=subprocess.DEVNULL)

    def answers() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return True
        return False

    wait_for(answers, server)
    pid, terminal = pty.fork()
    if pid == 0:
        code = 0
        try:
            cloned(f"ssh://127.0.0.1:{port}/nowhere", tmp_path, get_attempts=1)
        except SourceError:
            code = SourceError.exit_code
        os._exit(code)
    try:
        _, status = wait_for(lambda: done if any(done := os.waitpid(pid, os.WNOHANG)) else None, within_s=60)
        assert os.waitstatus_to_exitcode(status) == SourceError.exit_code
        assert b"yes/no" not in os.read(terminal, 65536)
    finally:
        server.terminate()
        server.wait()
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.close(terminal)


def test_contents_of_a_tree_in_a_special_remote_are_fetched_at_once(tmp_path: Path) -> None:
    """Of two git-annex that learn at once what the tree holds, one waited for ever; others find its database locked."""
    labels = [f"{number:02}" for number in range(1, 11)]
    source = committed(
        plain_dataset(tmp_path / "source", {t1w(label): small_head(int(label)) for label in labels}), annexed=True
    )
    (folder := tmp_path / "tree").mkdir()
    where = f"directory={folder}"
    git(source, "annex", "initremote", "tree", "type=directory", where, "encryption=none", "exporttree=yes")
    git(source, "annex", "export", "HEAD", "--to", "tree")
    git(source, "annex", "drop", "--force", ".")
    dataset = cloned(source, tmp_path, sites=[])
    git(dataset.path, "annex", "enableremote", "tree", where)
    new = multiprocessing.get_context("fork").Process
    fetching = [new(target=get_images, args=(dataset.path, [t1w(one)], ONCE, quiet), daemon=True) for one in labels]
    for one in fetching:
        one.start()
    for one in fetching:
        one.join(PATIENCE_S / len(labels))
    assert [one.exitcode for one in fetching] == [0] * len(labels)


def test_a_tree_in_a_special_remote_leaves_a_plain_folder_as_it_is(tmp_path: Path) -> None:
    """A ``.git`` in it would make it a repository without a commit, which the next run could not clone."""
    folder, labels = tmp_path / "plain", ["01", "02"]
    inner = plain_dataset(folder / "NYU", {t1w(label): small_head(int(label)) for label in labels})
    committed(inner, annexed=True)
    (tree := tmp_path / "tree").mkdir()
    git(
        inner, "annex", "initremote", "tree", "type=directory", f"directory={tree}", "encryption=none", "exporttree=yes"
    )
    git(inner, "annex", "export", "HEAD", "--to", "tree")
    git(inner, "annex", "drop", "--force", t1w("01"))
    assert get_images(folder, [f"NYU/{t1w('01')}"], ONCE, quiet) == 1
    assert [path.name for path in folder.iterdir()] == ["NYU"]
    lock = inner / ".git" / ".exports.lock"
    lock.unlink()
    lock.symlink_to("nowhere")  # as where nothing can be written: what git-annex kept costs only space
    assert drop_images(folder, [f"NYU/{t1w('02')}"]).startswith("1 of 1: unsafe")


def test_what_is_said_of_a_tree_is_no_option_of_git_annex(tmp_path: Path) -> None:
    """A dataset brings what is known about special remotes: a word of it could be an option of git-annex."""
    source = plain_dataset(tmp_path / "source", {t1w("01"): small_head(1)})
    committed(source, annexed=True)
    script(source / "evil", f"touch {tmp_path / 'ran'}")
    git(source, "-c", "annex.largefiles=nothing", "add", "evil")
    git(source, "commit", "--quiet", "-m", "hostile")
    git(source, "annex", "registerurl", "SHA256-s0--none", "http://127.0.0.1:9/none")
    branch = git(source, "rev-parse", "--abbrev-ref", "HEAD").strip()
    git(source, "checkout", "--quiet", "git-annex")
    (source / "remote.log").write_text("-cannex.http-headers-command=./evil a=b name=x exporttree=yes\n")
    git(source, "add", "remote.log")
    git(source, "commit", "--quiet", "-m", "hostile")
    git(source, "checkout", "--quiet", branch)
    dataset = cloned(source, tmp_path, sites=[])
    assert get_images(dataset.path, [t1w("01")], ONCE, quiet) == 1
    assert not (tmp_path / "ran").exists()


def test_what_another_run_is_fetching_into_the_shared_clone_is_waited_for(web: Server, tmp_path: Path) -> None:
    dataset = cloned(address(web), tmp_path)
    web.pause_s = 4
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context("spawn")) as pool:
        fetched = [pool.submit(get_images, dataset.path, [IMAGE], ONCE, print) for _ in range(3)]
        assert sum(one.result() for one in fetched) >= 1
    assert is_present(dataset.path, IMAGE)
    assert web.served == 1


def test_ria_store_is_a_source(demo_source: Path, tmp_path: Path) -> None:
    from datalad.api import clone, create_sibling_ria

    prepare_environment()
    work = clone(str(demo_source), str(tmp_path / "work"), result_renderer="disabled")
    store = f"ria+file://{tmp_path}/store"
    work.get(recursive=True, get_data=False, result_renderer="disabled")
    create_sibling_ria(store, name="store", dataset=work, recursive=True, new_store_ok=True, result_renderer="disabled")
    work.push(to="store", recursive=True, data="nothing", result_renderer="disabled")
    dataset = cloned(f"{store}#{work.id}", tmp_path, sites=[])
    assert list(dataset.sites) == ["SiteA", "SiteB"]


@pytest.mark.skipif(os.getuid() != 0, reason="giving a repository to another user needs root")
def test_a_source_of_another_user_is_said_with_what_git_asks_for(demo_copy: Path, tmp_path: Path) -> None:
    """Not that the network should be looked at: git refuses such a repository, unless it is told otherwise."""
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
    from datalad.api import Dataset as Repository

    prepare_environment()
    source = Repository(tmp_path / "source").create(result_renderer="disabled")
    for label in ("01", "02", "03"):
        source.create(f"sub-{label}", result_renderer="disabled")
        plain_dataset(source.pathobj, {t1w(label): small_head()})
    source.save(recursive=True, result_renderer="disabled")
    (source.pathobj / "sub-02").rename(tmp_path / "lost")
    dataset = cloned(source.path, tmp_path, sites=[], participants=[])
    assert list(dataset.unreachable) == ["sub-02"]
    require_sites(dataset, ["01", "sub-03"])
    with pytest.raises(SourceError, match=r"'sub-02': .* or dataset\.participants"):
        require_sites(dataset, ["02"])
    settings = settings_at().dataset
    assert list(index_dataset(dataset, settings, None, quiet).skipped) == ["'sub-02'"], "and once"
    asking = dataclasses.replace(settings, participants=["01"])
    assert index_dataset(dataset, asking, None, quiet).skipped == {}
    with pytest.raises(InputError, match="the dataset has no sub-99"):
        index_dataset(dataset, dataclasses.replace(settings, participants=["01", "99"]), None, quiet)


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
        lambda path: look_at("cache", path),
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
    unprivileged = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    told = subprocess.run([*unprivileged, sys.executable, "-c", SITES, str(tmp_path)], capture_output=True, text=True)
    assert told.stdout == "{'NYU': 'cannot be read', 'UPSM': ''}\n", told.stderr


def test_a_plain_folder_has_no_version(tmp_path: Path) -> None:
    source = plain_dataset(tmp_path / "bids", {t1w("01"): small_head()})
    with pytest.raises(InputError, match=r"^dataset\.version: a plain folder has no versions; leave it out$"):
        cloned(source, tmp_path, sites=[], version="v1")


def test_a_tier_without_symbolic_links_holds_no_clone(tmp_path: Path, demo_source: Path) -> None:
    """There git-annex changes the commits, which nobody else would know."""
    git(tmp_path, "clone", "--quiet", str(demo_source / "SiteA"), "site")
    git(tmp_path / "site", "config", "annex.crippledfilesystem", "true")
    assert refused(tmp_path / "site").startswith("its tier has no symbolic links or permissions, ")


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


def test_versions_have_clones_of_their_own(demo_copy: Path, tmp_path: Path) -> None:
    """Results at v1 must not find v2 in their clone because other results wanted that."""
    git(demo_copy, "tag", "v1")
    commit_version(demo_copy, "v2")
    clones = {}
    for version in ("v1", "v2", None, "v1"):
        clones[version] = cloned(demo_copy, tmp_path, version=version).path
    assert len(set(clones.values())) == 3
    assert {name: (path / "CHANGES").exists() for name, path in clones.items()} == {"v1": False, "v2": True, None: True}


def test_a_clone_that_somebody_moved_is_refused_until_it_is_at_the_version_asked_for(
    demo_copy: Path, tmp_path: Path
) -> None:
    """Its records would say v1 of what is v2; without a version, what is checked out there is somebody's choice."""
    git(demo_copy, "tag", "v1")
    commit_version(demo_copy, "v2")
    clone = cloned(demo_copy, tmp_path, version="v1").path
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


def test_unlocked_image_is_fetched(demo_copy: Path, tmp_path: Path) -> None:
    git(demo_copy / "SiteA", "annex", "unlock", IMAGE.removeprefix("SiteA/"))
    for folder in (demo_copy / "SiteA", demo_copy):
        git(folder, "commit", "-a", "-m", "unlock")
    dataset, size_bytes = cloned(demo_copy, tmp_path), (demo_copy / IMAGE).stat().st_size
    assert dataset.sites["SiteA"]["url"].startswith("urn:uuid:"), "it has no address"
    assert len(dataset.sites["SiteA"]["version"]) == 40
    assert not is_present(dataset.path, IMAGE)
    assert content_of(dataset.path, IMAGE).size_bytes == size_bytes
    before, pointer = index_dataset(dataset, SETTINGS, None, quiet), (dataset.path / IMAGE).read_bytes()
    assert get_images(dataset.path, [IMAGE], SETTINGS, quiet) == 1
    assert is_present(dataset.path, IMAGE)
    assert (dataset.path / IMAGE).stat().st_size == size_bytes
    assert index_dataset(dataset, SETTINGS, None, quiet) == before, "or all would be analysed again"
    (dataset.path / IMAGE).write_bytes(pointer)
    assert not is_present(dataset.path, IMAGE), "a pointer, as git-annex leaves it at times if two of it work at once"
    with pytest.raises(SourceError, match="its content is not on the dataset tier"):
        stage_in(dataset.path, [IMAGE], tmp_path / "staged", 1 << 30)
    assert get_images(dataset.path, [IMAGE], SETTINGS, quiet) == 1
    assert (dataset.path / IMAGE).read_bytes() == (demo_copy / IMAGE).read_bytes()
    (dataset.path / IMAGE).unlink()
    found = index_dataset(dataset, SETTINGS, None, quiet).images
    assert [(image.path, image.content) for image in found] == [(image.path, image.content) for image in before.images]
    assert get_images(dataset.path, [IMAGE], ONCE, quiet) == 1, "git-annex has it away for a moment, for another run"
    assert (dataset.path / IMAGE).read_bytes() == (demo_copy / IMAGE).read_bytes()


# Clones and contents that a power cut left half on the device: found, and had again.


@pytest.mark.parametrize("left_bytes", [0, 1000])
def test_content_of_another_size_than_its_key_is_fetched_again(
    demo_source: Path, tmp_path: Path, left_bytes: int
) -> None:
    dataset = cloned(demo_source, tmp_path, get_attempts=1)
    assert get_images(dataset.path, [IMAGE], ONCE, quiet) == 1
    whole, content = content_of(dataset.path, IMAGE), (dataset.path / IMAGE).resolve()
    assert whole.is_here
    content.chmod(0o644)
    os.truncate(content, left_bytes)
    assert content_of(dataset.path, IMAGE).is_damaged
    said: list[str] = []
    assert get_images(dataset.path, [IMAGE], ONCE, said.append) == 1
    assert f"{left_bytes} of {whole.size_bytes} bytes are here: fetched again" in said[0]
    assert (dataset.path / IMAGE).read_bytes() == (demo_source / IMAGE).read_bytes()


SPOILED = ["HEAD", "an object", "annex/index", "index", "config", "no object"]
AT_ONCE = [("SiteA", "HEAD"), ("SiteA", "an object"), ("SiteA", "annex/index"), ("", "HEAD")]
LATER = [case for case in itertools.product(("SiteA", ""), SPOILED) if case not in AT_ONCE]


@pytest.mark.parametrize(("site", "name"), [*AT_ONCE, *nightly(*LATER)])
def test_clone_that_git_cannot_use_is_cloned_anew(demo_source: Path, tmp_path: Path, name: str, site: str) -> None:
    dataset = cloned(demo_source, tmp_path, get_attempts=1)
    repository = dataset.path / site
    assert not fault_of(repository)
    tree = git(repository, "rev-parse", "HEAD^{tree}")
    for pack in (repository / ".git/objects/pack").glob("*.pack"):  # so that its objects are files
        pack.rename(tmp_path / pack.name)
        with (tmp_path / pack.name).open("rb") as packed:
            subprocess.run(["git", "-C", str(repository), "unpack-objects", "-q"], stdin=packed, check=True)
    file = repository / ".git" / name
    if "object" in name:
        file = repository / ".git/objects" / tree[:2] / tree[2:]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    if name != "no object":
        file.touch()
    assert fault_of(repository)
    said: list[str] = []
    again = cloned(demo_source, tmp_path, said.append, get_attempts=1)
    assert again == dataset
    assert not fault_of(repository)
    assert any("cloned anew" in line or "installing 1" in line for line in said), said
    assert get_images(again.path, [IMAGE], ONCE, quiet) == 1


def test_a_database_of_git_annex_that_was_emptied_is_made_anew(demo_copy: Path, tmp_path: Path) -> None:
    """Without it git-annex fetches no unlocked image."""
    git(demo_copy / "SiteA", "annex", "unlock", IMAGE.removeprefix("SiteA/"))
    for folder in (demo_copy / "SiteA", demo_copy):
        git(folder, "commit", "-a", "-m", "unlock")
    dataset = cloned(demo_copy, tmp_path)
    assert get_images(dataset.path, [IMAGE], ONCE, quiet) == 1
    assert drop_images(dataset.path, [IMAGE]) == ""
    (dataset.path / "SiteA/.git/annex/keysdb/db").write_bytes(b"")
    assert not fault_of(dataset.path / "SiteA")
    assert get_images(dataset.path, [IMAGE], ONCE, quiet) == 1
    assert (dataset.path / IMAGE).read_bytes() == (demo_copy / IMAGE).read_bytes()
    assert drop_images(dataset.path, [IMAGE]) == "", "or its tier would fill"
    assert not is_present(dataset.path, IMAGE)


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
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(SourceError, match="was ended while it was cloned"):
        cloned(demo_source, tmp_path, get_attempts=1)
    assert spoiled.exists()
    dataset = cloned(demo_source, tmp_path, get_attempts=1)
    assert all(is_whole(dataset.path / site) for site in ("", "SiteA"))


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
    assert content.key.startswith("URL--")
    assert (content.size_bytes, content.is_damaged) == (100, False)
    assert get_images(tmp_path, ["T1w.nii.gz"], ONCE, print) == 0
    assert (tmp_path / "T1w.nii.gz").stat().st_size == 100
