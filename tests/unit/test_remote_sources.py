"""Sources over HTTP and SSH on loopback, in stores and special remotes: what is slow, breaks off, stalls or asks."""

from __future__ import annotations

import functools
import http.server
import multiprocessing
import os
import pty
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from clones import IMAGE, ONCE, SETTINGS, WEBDAV, cloned, fetched, note_remote
from conftest import missing
from neurotier.core.errors import SourceError
from neurotier.dataset import contents
from neurotier.dataset.commands import prepare_environment
from neurotier.dataset.contents import content_of, drop_images, get_images, is_present
from support import PATIENCE_S, committed, git, plain_dataset, quiet, remove_tree, script, small_head, t1w, wait_for

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
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")  # without it git-annex fetches nothing from loopback
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "annex.security.allowed-ip-addresses")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "127.0.0.1")
    with Server(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def address(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def test_contents_travel_over_http_and_outages_and_pages_in_their_place_are_outlived(
    web: Server, tmp_path: Path
) -> None:
    """A web server without git's own protocol gives all objects but the empty tree, which git has by itself: the clone
    is whole, and not made again."""
    dataset = cloned(address(web), tmp_path)
    assert cloned(address(web), tmp_path, pytest.fail) == dataset
    assert dataset.sites.keys() == {"SiteA"}
    assert dataset.sites["SiteA"]["url"] == f"{address(web)}/SiteA"
    image, size_bytes = dataset.path / IMAGE, content_of(dataset.path, IMAGE).size_bytes
    assert not image.exists()
    web.down = 2
    assert get_images(dataset.path, [IMAGE], SETTINGS, quiet) == 1
    assert web.down == 0
    assert image.stat().st_size == size_bytes
    assert fetched(dataset) == 0
    drop_images(dataset.path, [IMAGE])
    assert not image.exists()
    # git-annex takes a page for the content's first bytes, and fetches the others; what it has then it removes
    web.pages = 5
    attempts: list[str] = []
    assert get_images(dataset.path, [IMAGE], SETTINGS, attempts.append) == 1
    assert "erification of content failed" in attempts[0]
    assert image.stat().st_size == size_bytes


def in_time(web: Server, work: Callable[[], Any]) -> Any:
    """What a function returns before the server gives up a connection that it holds."""
    web.over.clear()
    with ThreadPoolExecutor(1) as beside:
        try:
            return beside.submit(work).result(timeout=WAITING_S)
        finally:
            web.over.set()


def test_a_clone_or_a_content_that_stalls_is_begun_again(
    web: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A firewall may forget a connection, whose ends then wait for each other; here for 1 s instead of 120 or 30."""
    monkeypatch.setenv("GIT_HTTP_LOW_SPEED_TIME", "1")
    monkeypatch.setattr(contents, "FETCHING", [word.replace("30s", "1s") for word in contents.FETCHING])
    web.stalls_at = "/.git/objects/"
    said: list[str] = []
    dataset = in_time(web, lambda: cloned(address(web), tmp_path, said.append))
    assert "attempt 1 of " in "".join(said)
    web.stalls_at = "/annex/objects/"
    assert in_time(web, lambda: get_images(dataset.path, [IMAGE], SETTINGS, quiet)) == 1
    assert (dataset.path / IMAGE).stat().st_size == content_of(dataset.path, IMAGE).size_bytes


def enable(clone: Path, name: str, *options: str) -> None:
    """Enable a special remote, and confirm that it is safe where git-annex asks for that, as it does since 2026."""
    printed = git(clone, "annex", "enableremote", name, *options)
    if asked := re.search(r"git-annex (verifyremote .* --safe \S+)", printed):
        git(clone, "annex", *asked[1].split())


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
    where = f"a copy is in {name} .unless external, follow `git annex enableremote` in the clone"
    with pytest.raises(SourceError, match=f"could not be fetched: not available; {where}"):
        get_images(dataset.path, [IMAGE], SETTINGS, pytest.fail)
    enable(dataset.path / "SiteA", "store", f"directory={store}")
    assert fetched(dataset) == 1


def test_no_password_set_after_cloning_goes_where_a_dataset_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cloning refuses it, but the clone may have been made when there was no password to send."""
    monkeypatch.delenv("WEBDAV_PASSWORD", raising=False)
    image = t1w("01")
    source = committed(plain_dataset(tmp_path / "source", {image: small_head()}), annexed=True)
    git(source, "annex", "setpresentkey", content_of(source, image).key, WEBDAV.split()[0], "1")
    git(source, "annex", "drop", "--force", image)
    note_remote(source, WEBDAV)
    dataset = cloned(source, tmp_path, sites=[])
    for name in ("WEBDAV_USERNAME", "WEBDAV_PASSWORD"):
        monkeypatch.setenv(name, "secret")
    with pytest.raises(SourceError, match="with your WEBDAV_PASSWORD"):
        get_images(dataset.path, [image], ONCE, quiet)


def test_a_site_whose_own_address_is_down_is_tried_again_and_said_by_it(demo_copy: Path, tmp_path: Path) -> None:
    """Not by that of the source, where DataLad looks last."""
    remove_tree(demo_copy / "SiteB")
    git(demo_copy, "config", "--file", ".gitmodules", "submodule.SiteB.url", "http://127.0.0.1:1/x")
    git(demo_copy, "commit", "-m", "elsewhere", ".gitmodules")
    said: list[str] = []
    dataset = cloned(demo_copy, tmp_path, said.append, sites=[], get_attempts=2)
    assert any("attempt 1 of 2 failed (SiteB: cannot be installed: unable to access" in line for line in said), said
    assert "http://127.0.0.1:1/x" in dataset.unreachable["SiteB"]


def test_a_source_that_asks_who_it_is_is_said_to(tmp_path: Path) -> None:
    """Git says first that its own program for passwords gave no answer, which helps nobody."""

    class Asking(Handler):
        def do_GET(self) -> None:
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Basic")
            self.end_headers()

    with Server(("127.0.0.1", 0), Asking) as server:
        threading.Thread(target=server.serve_forever).start()
        address = f"http://127.0.0.1:{server.server_port}"
        with pytest.raises(SourceError, match=f"cannot be cloned: could not read Username for '{address}'"):
            cloned(f"{address}/x", tmp_path)
        server.shutdown()


def test_ssh_asks_nobody_at_a_terminal(tmp_path: Path) -> None:
    """Neither whether to trust an unknown host, nor for a password: a run waited for ever for the answer."""
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


def exported(folder: Path, labels: Sequence[str], tree: Path) -> Path:
    """A dataset whose images are also files of a folder, as a special remote that is named after it."""
    made = committed(plain_dataset(folder, {t1w(label): small_head(int(label)) for label in labels}), annexed=True)
    tree.mkdir()
    initremote = ["initremote", tree.name, "type=directory", f"directory={tree}", "encryption=none", "exporttree=yes"]
    git(made, "annex", *initremote)
    git(made, "annex", "export", "HEAD", "--to", tree.name)
    return made


def test_contents_of_a_tree_in_a_special_remote_are_fetched_at_once(tmp_path: Path) -> None:
    """Of two git-annex that learn at once what the tree holds, one waited for ever; others find its database locked."""
    labels = [f"{number:02}" for number in range(1, 11)]
    source = exported(tmp_path / "source", labels, tmp_path / "tree")
    git(source, "annex", "drop", "--force", ".")
    dataset = cloned(source, tmp_path, sites=[])
    enable(dataset.path, "tree", f"directory={tmp_path}/tree")
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
    inner = exported(folder / "NYU", labels, tmp_path / "tree")
    git(inner, "annex", "drop", "--force", t1w("01"))
    assert get_images(folder, [f"NYU/{t1w('01')}"], ONCE, quiet) == 1
    assert [path.name for path in folder.iterdir()] == ["NYU"]
    lock = inner / ".git" / ".exports.lock"
    lock.unlink()
    lock.symlink_to("nowhere")  # as where nothing can be written: what git-annex kept costs only space
    assert drop_images(folder, [f"NYU/{t1w('02')}"]).startswith("unsafe")


def test_what_a_dataset_says_of_a_special_remote_is_not_taken_for_an_option_of_git_annex(tmp_path: Path) -> None:
    """A dataset brings what is known about special remotes: a word of it could be an option of git-annex."""
    source = committed(plain_dataset(tmp_path / "source", {t1w("01"): small_head()}), annexed=True)
    script(source / "evil", f"touch {tmp_path / 'ran'}")
    git(source, "-c", "annex.largefiles=nothing", "add", "evil")
    git(source, "commit", "-m", "hostile")
    git(source, "annex", "registerurl", "SHA256-s0--none", "http://127.0.0.1:9/none")
    note_remote(source, "-cannex.http-headers-command=./evil a=b name=x exporttree=yes")
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
