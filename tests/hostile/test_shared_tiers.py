"""Another user has been on the tier first: planted links, folders and owners are refused, and harm nobody."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest
from conftest import missing, nightly
from neurotier.core.places import short_hash
from slurm_hosts import USER, becoming, give
from support import NOBODY, ROOT, STAND_INS, Ended, Project, git, private_folder, script, t1w

OTHER_USER = NOBODY
"""Processes of the attacker run under it."""

WORD = "planted"
"""A password."""

HOLD = """
import fcntl, os, sys
held = []
for root, _, names in os.walk(sys.argv[1]):
    for name in names:
        try:
            held.append(os.open(os.path.join(root, name), os.O_RDONLY))
            fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass
print(len(held), flush=True)
sys.stdin.read()
"""
"""Locks every file below a folder that can be opened, and keeps them."""


@pytest.fixture
def tier() -> Iterator[Path]:
    """A folder in memory that everybody may write to, and only owners may remove from: like ``/dev/shm`` itself."""
    if os.getuid() != 0:
        missing("becoming another user needs root")
    with tempfile.TemporaryDirectory(prefix="neurotier-test-", dir="/dev/shm") as name:
        Path(name).chmod(0o1777)
        yield Path(name)


@pytest.fixture
def victim() -> Iterator[Path]:
    """A folder of this user's with a file that nobody else may read or lose."""
    with tempfile.TemporaryDirectory(prefix="victim-", dir="/dev/shm") as name:
        (Path(name) / "sub-01").mkdir()
        (Path(name) / "sub-01/precious").write_text("canary")
        yield Path(name)
        assert (Path(name) / "sub-01/precious").read_text() == "canary"
        assert sorted(path.name for path in Path(name).rglob("*")) == ["precious", "sub-01"]


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of this user's that is none of the run's."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    assert process.poll() is None
    process.kill()
    process.wait()


def as_other_user(script: str) -> None:
    """Run a shell script as the attacker."""
    subprocess.run(["sh", "-euc", script], user=OTHER_USER, group=OTHER_USER, extra_groups=[], check=True)


@pytest.fixture
def ordinary(tier: Path) -> Project:
    """The attacked project, in an ordinary user's home with 26 files where a run would look for what it may remove."""
    home = tier / "home"
    project = Project.at(home / "project", before=partial(becoming, USER, home))
    project.heads("01")
    precious = home / "data/state/told"
    precious.mkdir(parents=True)
    for number in range(26):
        (precious / str(number)).write_text("canary")
    give(home)
    return project


def configure(project: Project, tiers: Mapping[str, Path] = {}, **sections: object) -> None:
    """A project in memory whose tool does nothing."""
    project.configure(tiers={"local": {"path": ".", "kind": "tmpfs"}, **tiers}, tool="noop", **sections)


def put_results(tier: Path, results: str, project: Project) -> None:
    """Configure a project whose results are at a path below the tier."""
    configure(project, {"place": tier}, placement={"results": "place"}, results=results)


def run(project: Project, tier: Path, results_tier: str = "local", path: Path | None = None) -> Ended:
    """One participant with a stand-in for bet, or that of a folder, its intermediates on the tier."""
    project.heads("01")
    placement = {"work": "shared", "results": results_tier}
    return project.snakemake("participants", path=path, tool="bet", tiers={"shared": tier}, placement=placement)


def refused(ended: Ended, part: str) -> None:
    """It ended with one line that names owner and mend."""
    (line,) = ended.failed().lines(part)
    assert "user nobody" in line


def test_a_folder_at_our_name_is_refused(
    project: Project, tier: Path, victim: Path, bystander: subprocess.Popen[bytes]
) -> None:
    """The folder for work is known beforehand: in it stands a link, and an owner that is somebody else's process."""
    work = private_folder(tier) / "work" / short_hash(str(project.results))
    owner = {
        "host": socket.gethostname(),
        "pid": bystander.pid,
        "started_s": psutil.Process(bystander.pid).create_time(),
    }
    planted = f"mkdir -m 777 -p {work}/sub-01; ln -s {victim} {work}/sub-02; cd {work}/sub-01"
    as_other_user(f"{planted}; echo '{json.dumps(owner)}' > owner.json; chmod -R 777 {private_folder(tier)} || :")
    refused(run(project, tier), "belongs to user")


def test_a_results_folder_that_another_user_made_is_refused(project: Project, tier: Path, victim: Path) -> None:
    as_other_user(f"mkdir -m 777 {tier}/results; ln -s {victim} {tier}/results/derivatives")
    refused(run(project, tier, results_tier="shared"), "made where everybody may write")


def test_intermediates_are_readable_by_the_user_alone_and_go(project: Project, tier: Path) -> None:
    """A private image stays private: seen while the tool runs, which looks at what it was given."""
    seen = project.folder / "seen"
    look = f'stat -c "%a %n" "$1" "$(dirname "$1")" {private_folder(tier)} >>{seen}; exec {STAND_INS}/bet "$@"'
    spy = script(project.folder / "bin/bet", look).parent
    (project.heads("01") / t1w("01")).chmod(0o600)
    run(project, tier, path=spy).succeeded()
    modes = [line.split()[0] for line in seen.read_text().splitlines()]
    assert modes == ["600", "700", "700"]
    assert list(tier.iterdir()) == []


@pytest.mark.nightly
def test_a_link_that_is_there_when_a_run_ends_keeps_nobody_from_learning_how(
    project: Project, tier: Path, victim: Path
) -> None:
    ours = private_folder(tier)
    plants = script(project.folder / "bin/bet", f"mv {ours} {tier}/away; ln -s {victim} {ours}; exit 1").parent
    (line,) = run(project, tier, path=plants).failed().lines("failed  sub-01: ")
    assert f"{ours} is a link" in line
    assert (project.results / "report.html").exists()


@pytest.mark.parametrize(
    ("planted", "results", "why"),
    [
        ("mkdir -m 755 a; mkdir -m 777 a/results; ln -s {home}/data/state a/results/state", "a/results", "a folder"),
        *nightly(
            ("mkdir -m 755 a; ln -s {home} a/link", "a/link/data", "a folder"),
            ("ln -s {home} link", "link/data", "a link"),
        ),
    ],
)
def test_results_below_what_another_user_made_are_refused(
    ordinary: Project, tier: Path, planted: str, results: str, why: str
) -> None:
    as_other_user(f"cd {tier}; {planted.format(home=tier / 'home')}")
    put_results(tier, results, ordinary)
    refused(ordinary.snakemake("participants"), f"is {why} that user nobody made where everybody may write")
    assert len(list((tier / "home/data/state/told").iterdir())) == 26


def test_a_link_of_another_user_is_refused_by_all_that_removes(ordinary: Project, tier: Path) -> None:
    """The folder in which it lies is root's, and nobody else may write there."""
    lab = tier / "lab"
    lab.mkdir(mode=0o755)
    (lab / "link").symlink_to(tier / "home")
    os.chown(lab / "link", OTHER_USER, OTHER_USER, follow_symlinks=False)
    put_results(tier, "lab/link/data", ordinary)
    for ended in (
        ordinary.snakemake("participants"),
        ordinary.snakemake("participants", "--delete-all-output"),
        ordinary.neurotier("images", str(lab / "link/data"), "--remove-unused", "0"),
        ordinary.neurotier("jobs", str(lab / "link/data"), "--cancel"),
    ):
        refused(ended, f"{lab / 'link'} is a link that user nobody made")
    assert len(list((tier / "home/data/state/told").iterdir())) == 26


def test_a_folder_of_snakemake_s_that_another_user_made_is_refused(ordinary: Project, tier: Path) -> None:
    """What is no record there is removed, and scripts are run from there."""
    ordinary.folder.chmod(0o1777)
    planted = f"mkdir -m 777 .snakemake; ln -s {tier}/home/data/state .snakemake/metadata"
    as_other_user(f"cd {ordinary.folder}; {planted}")
    put_results(tier, "mine", ordinary)
    refused(
        ordinary.snakemake("participants"),
        f"Snakemake's folder: {ordinary.folder}/.snakemake is a folder that user nobody made",
    )
    assert len(list((tier / "home/data/state/told").iterdir())) == 26


@pytest.mark.parametrize(
    "planted", ["mkdir -m 755 a; mkdir -m 777 a/tier; ln -s a/tier tier", *nightly("mkdir -m 777 tier")]
)
def test_a_tier_that_another_user_made_is_refused(ordinary: Project, tier: Path, planted: str) -> None:
    as_other_user(f"cd {tier}; {planted}")
    configure(ordinary, {"planted": tier / "tier"}, placement={"work": "planted"})
    refused(ordinary.snakemake("participants"), "tier 'planted': ")
    assert not ordinary.results.exists()
    assert not list(tier.glob("**/neurotier-*"))


def test_a_folder_that_everybody_may_change_is_refused(ordinary: Project, tier: Path) -> None:
    """As an ordinary user's own, it is to be closed, once it is clear what others have put there."""
    (tier / "open").mkdir()
    (tier / "open").chmod(0o777)
    put_results(tier, "open/mine", ordinary)
    ordinary.fails("participants").says(
        f"{tier}/open is a folder of user root that everybody may write to; check who has written there"
    )
    assert not list((tier / "open").iterdir())


def test_a_working_folder_of_another_user_is_refused_in_a_line(ordinary: Project) -> None:
    """As a colleague's checkout; to look at its targets is allowed."""
    configure(ordinary)
    os.chown(ordinary.folder, 0, 0)
    ordinary.fails("participants").says(
        f"neurotier: {ordinary.folder}: you may not write to it, or it is mounted read-only;"
    )
    ordinary.succeeds("--list").says("participants")


def test_a_group_shares_a_folder_and_others_lock_and_learn_nothing(ordinary: Project, tier: Path) -> None:
    """A colleague's folder is used; who holds all that can be opened holds up nobody, and can watch."""
    lab = tier / "lab"
    lab.mkdir()
    shutil.chown(lab, OTHER_USER, USER)
    lab.chmod(0o2775)
    results = lab / "me"
    put_results(tier, "lab/me", ordinary)
    ordinary.succeeds("participants")
    (results / "state/lock").chmod(0o644)  # as by a chmod of the whole folder
    ordinary.succeeds("participants")
    other = [*becoming(OTHER_USER, tier / "home"), sys.executable]
    subprocess.run([*other, "-m", "neurotier", "watch", str(results), "--once"], cwd=ROOT / "workflow", check=True)
    hold = [*other, "-c", HOLD, str(tier)]
    with subprocess.Popen(hold, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert int(holder.stdout.readline()) > 10
        ended = ordinary.snakemake("participants", "--forceall")
        holder.communicate()
    assert ended.succeeded().analysed == ["sub-01"]


class Closed(SimpleHTTPRequestHandler):
    """A server of a folder that asks who it is."""

    seen: list[str]

    def do_GET(self) -> None:
        if asked := self.headers.get("Authorization"):
            self.seen.append(asked)
            super().do_GET()
            return
        self.send_response(401)
        self.send_header("WWW-Authenticate", "Basic")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_the_token_of_a_source_is_used_and_not_shown_to_others(ordinary: Project, demo_copy: Path) -> None:
    """Of a dataset that is not there, and of one from which a campaign is planned."""
    Closed.seen = []
    for repository in (demo_copy, demo_copy / "SiteA", demo_copy / "SiteB"):
        git(repository, "update-server-info")
    campaign = {"placements": {"here": {}}, "parallelism": [1]}
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Closed, directory=str(demo_copy))) as server:
        threading.Thread(target=server.serve_forever).start()
        source = f"http://me:{WORD}@127.0.0.1:{server.server_port}"
        configure(ordinary, campaign=campaign)
        arguments = ["results/campaign/plan.tsv", "--config"]
        refused, planned = (
            ordinary.snakemake(*arguments, f"dataset={{source: '{source}/{path}', get_attempts: 1}}")
            for path in ("ds", "")
        )
        server.shutdown()
    assert refused.code != 0
    planned.succeeded()
    kept = [file.read_text() for file in ordinary.folder.glob(".snakemake/metadata/*")]
    assert any("'placements'" in text for text in kept), "Snakemake keeps what rules are given"
    assert not any(WORD in text for text in kept)
    assert f"Basic {base64.b64encode(f'me:{WORD}'.encode()).decode()}" in Closed.seen
    for user, found in ((USER, True), (OTHER_USER, False)):
        looked = ["grep", "--recursive", "--files-with-matches", "--no-messages", WORD, str(ordinary.folder)]
        done = subprocess.run(looked, user=user, group=user, extra_groups=[], capture_output=True, text=True)
        assert bool(done.stdout) == found, done.stdout
