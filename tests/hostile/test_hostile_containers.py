"""Hostile containers: whatever an image leaves behind, nothing of the host is taken along, changed or held up."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from conftest import missing
from container_images import Engine, make_tiny
from hostile_host import CANARY, Host, holding_canary
from neurotier.analysis.app import merge_outputs
from neurotier.analysis.in_container import read_labels
from neurotier.containers.run import Container
from neurotier.core.errors import ContainerError, ToolError
from neurotier.core.private import remove_private
from neurotier.core.settings import ContainerSettings
from support import Project, plain_dataset, small_head, t1w

SETTINGS = ContainerSettings("sandbox", network=False, environment={}, binds=[], build_arguments={})

GOOD_MASK = "cp /opt/mask.nii.gz brain_mask.nii.gz"


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host.at(tmp_path / "host")


@pytest.fixture(autouse=True)
def busybox() -> None:
    if shutil.which("busybox") is None:
        missing("Debian's busybox-static is not installed")


def refused(host: Host, engine: Engine, root: Path, kind: str) -> str:
    """The one line that a job ends with, once nothing of the host has proved to be taken or changed."""
    before = host.untouched()
    ended = host.job(engine, root, kind)
    assert host.untouched() == before
    assert holding_canary(host.results) == []
    assert CANARY.decode() not in ended.stdout + ended.stderr
    assert ended.returncode != 0, ended.stdout
    (line,) = ended.stderr.splitlines()
    return line


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("rm log; ln -s SECRET log; exit 3", "the tool's log: is a link, and only files are read"),
        ("rm log; mkfifo log; exit 3", "the tool's log: is a FIFO"),
        ("ln -s SECRET exit", "the tool's exit code: is a link"),
        ("mkfifo exit; (cat exit; sleep 1) >/dev/null 2>&1 &", "the tool's exit code: is a FIFO"),
        ("cd /work; rm -r 0; ln -s TRAP 0", "lies behind a link, which is not followed"),
        ("cd /work; rm -r 0; mkfifo 0", "lies behind a link, which is not followed"),
        ("ln -s TRAP/brain_mask.nii.gz brain_mask.nii.gz", "mask of bet: is a link"),
        ("mkfifo brain_mask.nii.gz", "mask of bet: is a FIFO"),
        ("mkdir brain_mask.nii.gz", "mask of bet: is a folder"),
        ("cd /work; rm -r 0", "head.nii.gz: "),
        (f"{GOOD_MASK}; echo 99999999999999999999 >exit; kill -9 $PPID", "head.nii.gz: bet failed"),
    ],
)
def test_a_tool_that_puts_something_else_in_place_of_its_files(
    host: Host, engine: Engine, script: str, said: str
) -> None:
    assert said in refused(host, engine, host.image(bet=script), "bet")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("rm -rf /work/cache; ln -s TRAP /work/cache", "cache: is a link, not a folder"),
        ("mkdir -p /work/cache; ln -s SECRET /work/cache/a", "cache/a: is a link that leads out of its folder"),
        ("mkdir -p /work/cache; ln -s ../tmp /work/cache/a", "cache/a: is a link that leads out of its folder"),
        ("mkdir -p /work/cache; mkfifo /work/cache/a", "cache/a: is a FIFO"),
        ("mkdir -p /work/cache; truncate -s 2G /work/cache/a", "cache: is more than 1000000000 bytes"),
        ("mkdir -p /work/cache; cd /work/cache; for i in $(seq 10001); do : >$i; done", "or 10000 files"),
        (
            "mkdir -p /work/cache; cd /work/cache; for i in $(seq 300); do mkdir d; cd d; done; touch x",
            "cache: folders are nested more than 100 deep",
        ),
        ("rm -f /work/version; ln -s SECRET /work/version", "the tool's version: is a link"),
        ("rm -f /work/version; mkfifo /work/version", "the tool's version: is a FIFO"),
    ],
)
def test_a_tool_that_has_the_host_copied_or_read_when_it_is_prepared(
    host: Host, engine: Engine, script: str, said: str
) -> None:
    assert said in refused(host, engine, host.image(python3=f"{script}; true"), "brainextractor")
    assert not (host.results / "store.cache").exists()


def test_what_an_image_is_started_with_cannot_be_changed_from_inside(host: Host, engine: Engine) -> None:
    attack = (
        "cd /.neurotier; rm -rf ./* ; echo evil >environment; echo evil >script; echo missing >said; "
        "mkfifo more; ln -s SECRET more; mv said gone; cd /work/0; "
    )
    ended = host.job(engine, host.image(bet=attack + GOOD_MASK), "bet")
    assert ended.returncode == 0, ended.stderr
    assert "masks [" in ended.stdout
    assert sorted(path.name for path in host.work.iterdir()) == ["in", "preparing"], "nothing is left of the start"


def test_a_work_folder_that_a_container_has_changed_is_not_bound_again(host: Host, engine: Engine) -> None:
    root = host.image()
    for name in ("tmp", "home"):
        container = Container(engine.path, root, SETTINGS, host.work / name)
        attack = f"rm -rf /work/{name} 2>/dev/null; mv /work/{name} /work/old; ln -s {host.trap} /work/{name}"
        container.run(["sh", "-c", attack], host.results / "log")
        before = host.untouched()
        with pytest.raises(ContainerError, match=f"{name}: is a link that a container has left, not a folder"):
            container.run(["sh", "-c", "echo x >/tmp/x"], host.results / "log")
        assert host.untouched() == before


def test_an_image_whose_mount_points_are_links(host: Host, engine: Engine) -> None:
    root = host.image()
    for name in ("work", "input", ".neurotier"):
        (root / name).symlink_to(host.trap)
    before = host.untouched()
    container = Container(engine.path, root, SETTINGS, host.work / "scratch")
    code, _ = container.run(["sh", "-c", "echo x >/work/x; ls /work/inner"], host.results / "log")
    assert code != 0, "what the host has there is not to be seen"
    assert host.untouched() == before


@pytest.mark.parametrize("version", ["1.2", "host's own"])
def test_labels_that_are_a_link_are_those_of_the_image(host: Host, engine: Engine, version: str) -> None:
    """The engine's own inspection follows such a link into the user's home."""
    root = host.image()
    labels = root / ".singularity.d" / "labels.json" if version == "1.2" else host.secret
    labels.write_text(json.dumps({"Version": version}))
    if labels == host.secret:
        (root / ".singularity.d" / "labels.json").symlink_to(labels)
    container = Container(engine.path, root, SETTINGS, host.work / "scratch")
    assert read_labels(container, host.results / "log") == ("1.2" if version == "1.2" else "unknown")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("ln -s SECRET /out/a", "app: /out/a: is a link that leads out of its folder, to '"),
        ("ln -s TRAP /out/d", "app: /out/d: is a link that leads out of its folder, to '"),
        ("mkdir /out/a; ln -s ../../in/head.nii.gz /out/a/b", "app: /out/a/b: is a link that leads out"),
        ("mkdir /out/a; ln -s . /out/here; ln -s here/../../in /out/b", "app: /out/b: is a link that leads out"),
        ("mkfifo /out/a", "app: /out/a: is a FIFO"),
        ("cd /out; for i in $(seq 300); do mkdir d; cd d; done; touch x", "nested more than 100 deep"),
        ("true", "wrote nothing"),
    ],
)
def test_an_app_whose_output_is_more_than_files(host: Host, engine: Engine, script: str, said: str) -> None:
    assert said in refused(host, engine, host.image(app=script), "app")
    assert not (host.results / "derivatives").exists()


@pytest.mark.parametrize("place", ["/out", "/work"])
def test_folders_too_deep_for_whoever_walks_them(host: Host, engine: Engine, place: str) -> None:
    script = f"echo x >/out/x; cd {place}; for i in $(seq 1800); do mkdir d; cd d; done"
    ended = host.job(engine, host.image(app=script), "app")
    assert (ended.returncode == 0) == (place == "/work"), ended.stderr
    assert ended.stderr == "" or "nested more than 100 deep" in ended.stderr
    remove_private(host.work)
    assert not host.work.exists()


def test_links_inside_an_output_are_kept(host: Host, engine: Engine) -> None:
    script = "mkdir /out/a; echo x >/out/a/b; ln -s a/b /out/c; ln -s ../c /out/a/d; ln -s a /out/e"
    ended = host.job(engine, host.image(app=script), "app")
    assert ended.returncode == 0, ended.stderr
    made = host.results / "derivatives"
    links = {str(path.relative_to(made)): os.readlink(path) for path in made.rglob("*") if path.is_symlink()}
    assert links == {"c": "a/b", "a/d": "../c", "e": "a"}
    assert (made / "c").read_text() == (made / "e" / "d").read_text() == "x\n"


CORE_PATTERN = Path("/proc/sys/kernel/core_pattern")

TAKE_THE_MACHINE = r"""cd /work
printf '#!/bin/sh\nid -u >TRAP/payload\n' >payload
chmod 755 payload
place=$(sed -n 's/^[0-9]* [0-9]* [0-9:]* \([^ ]*\) \/work .*/\1/p' /proc/self/mountinfo)
echo "|$place/payload" >/proc/sys/kernel/core_pattern
sh -c 'kill -SEGV $$'
find /proc /sys -maxdepth 4 -path '/proc/[0-9]*' -prune -o -type f -print | while read -r file; do
    true >>"$file" && echo "$file"
done >/out/opened
true </dev/tty && echo terminal >>/out/opened
busybox unshare -U -m true && echo mounted >>/out/opened
cat /proc/*/environ /proc/*/task/*/environ >/out/environ
true"""
"""What a container of root's would do: have a program of its own run by the machine when another one crashes, open all
that the kernel lets root change, and the terminal, which takes input from whoever holds it open; mount something in a
user namespace of its own, as control groups can be; and look for what the host's environment has."""

ON_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


@pytest.mark.alone
def test_a_container_of_roots_changes_nothing_of_the_machine(host: Host, engine: Engine) -> None:
    if os.geteuid() != 0:
        missing("only root's containers could")
    mount = 'mount -t binfmt_misc none /proc/sys/fs/binfmt_misc; exec "$@"'  # as most machines have mounted it
    before = ("unshare", "--mount", "sh", "-c", mount, "sh", sys.executable, "-c", ON_A_TERMINAL)
    untouched, pattern = host.untouched(), CORE_PATTERN.read_text()
    path = f"{os.environ['PATH']}:/{CANARY.decode()}"
    try:
        ended = host.job(engine, host.image(app=TAKE_THE_MACHINE), "app", *before, PATH=path)
        assert (CORE_PATTERN.read_text(), host.untouched()) == (pattern, untouched)
    finally:
        CORE_PATTERN.write_text(pattern)
    assert ended.returncode == 0, ended.stdout
    assert (host.results / "derivatives" / "opened").read_text() == ""
    assert holding_canary(host.results) == []


def outputs(host: Host) -> tuple[Path, Path, Path]:
    """Outputs of two participants, and where they are laid over each other."""
    one, two, target = (host.folder / name for name in ("one", "two", "target"))
    for folder in (one, two, target):
        folder.mkdir()
    return one, two, target


def test_an_output_does_not_lead_another_one_out(host: Host) -> None:
    one, two, target = outputs(host)
    before = host.untouched()
    (two / "d").mkdir()
    (two / "d" / "log").write_text("evil")
    (one / "d").symlink_to(host.trap)
    with pytest.raises(ToolError, match=r"one/d: is a link that leads out of its folder, to '.*trap'"):
        merge_outputs([one, two], target)
    (target / "d").symlink_to(host.trap)
    with pytest.raises(ToolError, match="two/d/log: lies below 'd', which is a link or a file in the target"):
        merge_outputs([two], target)
    assert host.untouched() == before


def test_outputs_that_differ_in_kind(host: Host) -> None:
    one, two, target = outputs(host)
    os.mkfifo(two / "pipe")
    (one / "pipe").write_text("x")
    with pytest.raises(ToolError, match="two/pipe: is a FIFO"):
        merge_outputs([one, two], target)
    (two / "pipe").unlink()
    for folder, text in ((one, "a"), (two, "b")):
        (folder / "link").symlink_to("pipe")
        (folder / "text").write_text(text)
    (one / "kind").write_text("x")
    (two / "kind").symlink_to("text")
    assert merge_outputs([one, two], host.folder / "other") == ["kind", "text"]
    assert (host.folder / "other" / "text").read_text() == "a"


def test_an_app_that_writes_out_of_its_folder_fails_alone_in_a_run(
    project: Project, host: Host, engine: Engine, tmp_path: Path
) -> None:
    """The group level would have written through the link of one participant what another one wrote."""
    script = f"""case $3$5 in
participant00) echo x >/out/x; ln -s {host.trap} /out/d; ln -s {host.secret} /out/s ;;
participant*) mkdir /out/d; echo evil >/out/d/log ;;
esac"""
    (tmp_path / "image").mkdir()
    app = {"image": str(make_tiny(engine, tmp_path / "image", script)), "name": "evil"}
    plain_dataset(project.folder / "bids", {t1w(f"{number:02d}"): small_head(number) for number in range(2)})
    before = host.untouched()
    given = project.configure(dataset={"source": "bids"}, app=app)
    ended = project.snakemake(*given, "--sdm", "apptainer", "--keep-going")
    assert ended.code != 0
    assert ended.lines("neurotier: sub-00: evil: /out/d: is a link that leads out of its folder, to "), ended.output
    assert not (project.results / "app" / "sub-00").exists()
    assert (project.results / "app" / "sub-01" / "d" / "log").read_text() == "evil\n"
    assert host.untouched() == before
    assert holding_canary(project.folder) == []
    assert CANARY.decode() not in ended.output
    assert project.leftovers() == []
