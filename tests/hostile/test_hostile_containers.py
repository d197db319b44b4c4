"""Hostile containers: whatever an image leaves behind, nothing of the host is taken along, changed or held up.

A run has a participant for each attack: it fails alone, or is done if the attack comes to nothing.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from conftest import missing, need, nightly
from container_images import Engine, make_tiny, tiny_root
from hostile_host import CANARY, SWITCHES, Host, by_participant, holding_canary
from support import Ended, Project

GOOD_MASK = "cp /opt/mask.nii.gz brain_mask.nii.gz"
DEEP = "for i in $(seq {}); do mkdir d; cd d; done"


@pytest.fixture(autouse=True, scope="module")
def busybox() -> None:
    need("busybox", "Debian's busybox-static")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host.at(tmp_path / "host")


TOOLS = {
    "a": ("rm log; ln -s SECRET log; exit 3", "the tool's log: is a link, and only files are read"),
    "b": ("rm log; mkfifo log; exit 3", "the tool's log: is a FIFO"),
    "c": ("ln -s SECRET exit", "the tool's exit code: is a link"),
    "d": ("mkfifo exit; (cat exit; sleep 1) >/dev/null 2>&1 &", "the tool's exit code: is a FIFO"),
    "e": ("cd /work; rm -r 0; ln -s TRAP 0", "lies behind a link, which is not followed"),
    "f": ("cd /work; rm -r 0; mkfifo 0", "lies behind a link, which is not followed"),
    "g": ("ln -s TRAP/brain_mask.nii.gz brain_mask.nii.gz", "mask of bet: the image file is a link"),
    "h": ("mkfifo brain_mask.nii.gz", "mask of bet: the image file is a FIFO"),
    "i": ("mkdir brain_mask.nii.gz", "mask of bet: the image file is a folder"),
    "j": ("cd /work; rm -r 0", "_T1w.nii.gz: "),
    "k": (f"{GOOD_MASK}; echo 99999999999999999999 >exit; kill -9 $PPID", "_T1w.nii.gz: bet failed"),
    "l": (
        "truncate -s 1G log; echo >>log; echo the last line >>log; exit 3",
        "bet failed (exit code 3): the last line",
    ),
    "m": (
        f"""cd /.neurotier; rm -rf ./*; echo evil >environment; echo evil >script; echo missing >said
mkfifo more; ln -s SECRET more; mv said gone; cd /work/0; {GOOD_MASK}""",
        "",
    ),
}
"""What a tool does in place of its work, and what is said of it; nothing of what changes nothing."""

APPS = {
    "a": ("ln -s SECRET /out/a", "app: /out/a: is a link that leads out of its folder, to '"),
    "b": ("ln -s TRAP /out/d", "app: /out/d: is a link that leads out of its folder, to '"),
    "c": ("mkdir /out/a; ln -s ../../in/head.nii.gz /out/a/b", "app: /out/a/b: is a link that leads out"),
    "d": ("mkdir /out/a; ln -s . /out/here; ln -s here/../../in /out/b", "app: /out/b: is a link that leads out"),
    "e": ("mkfifo /out/a", "app: /out/a: is a FIFO"),
    "f": (f"cd /out; {DEEP.format(300)}; touch x", "nested more than 100 deep"),
    "g": (f"echo x >/out/x; cd /out; {DEEP.format(1800)}", "nested more than 100 deep"),
    "h": ("true", "wrote nothing"),
    "i": (f"echo x >/out/x; cd /work; {DEEP.format(1800)}", ""),
    "links": ("mkdir /out/a; echo x >/out/a/b; ln -s a/b /out/c; ln -s ../c /out/a/d; ln -s a /out/e", ""),
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, engine: Engine) -> dict[str, tuple[Host, Ended]]:
    """A run over all attacks of tools, and one over those of apps."""
    done = {}
    for kind, attacks in (("tool", TOOLS), ("app", APPS)):
        host = Host.at(tmp_path_factory.mktemp(kind) / "host")
        scripts = {label: script for label, (script, _) in attacks.items()}
        shutil.copy(host.trap / "brain_mask.nii.gz", tiny_root(host.folder) / "opt/mask.nii.gz")
        image = host.image(engine, by_participant(scripts, "$5"), bet=by_participant(scripts, "$1"))
        app = {"image": image, "name": "app", "group": False}
        host.configure(attacks, **{kind: app if kind == "app" else {"name": "bet", "bet": {"image": image}}})
        done[kind] = host, host.run("participants")
    return done


@pytest.mark.parametrize(
    ("kind", "label", "said"),
    [(kind, label, said) for kind, cases in (("tool", TOOLS), ("app", APPS)) for label, (_, said) in cases.items()],
)
def test_an_attack_fails_its_participant_alone(
    ran: dict[str, tuple[Host, Ended]], kind: str, label: str, said: str
) -> None:
    host, ended = ran[kind]
    lines = ended.lines(f"failed  sub-{label}: ")
    assert [said in line for line in lines] == [True] * bool(said), ended.output
    made = host.project.results / ("derivatives" if kind == "tool" else "app") / f"sub-{label}"
    assert made.exists() == (not said)


def test_links_inside_an_output_are_kept(ran: dict[str, tuple[Host, Ended]]) -> None:
    made = ran["app"][0].project.results / "app/sub-links"
    links = {str(path.relative_to(made)): os.readlink(path) for path in made.rglob("*") if path.is_symlink()}
    assert links == {"c": "a/b", "a/d": "../c", "e": "a"}
    assert (made / "c").read_text() == (made / "e/d").read_text() == "x\n"


PREPARING = [
    ("rm -rf /work/cache; ln -s TRAP /work/cache", "cache: is a link, not a folder"),
    ("mkdir -p /work/cache; ln -s SECRET /work/cache/a", "cache/a: is a link that leads out of its folder"),
    ("mkdir -p /work/cache; ln -s ../tmp /work/cache/a", "cache/a: is a link that leads out of its folder"),
    ("mkdir -p /work/cache; mkfifo /work/cache/a", "cache/a: is a FIFO"),
    ("mkdir -p /work/cache; truncate -s 2G /work/cache/a", "cache: is more than 1000000000 bytes"),
    ("mkdir -p /work/cache; cd /work/cache; for i in $(seq 10001); do : >$i; done", "or 10000 files"),
    (f"mkdir -p /work/cache; cd /work/cache; {DEEP.format(300)}; touch x", "cache: folders are nested more than 100"),
    ("rm -f /work/version; ln -s SECRET /work/version", "the tool's version: is a link"),
    ("rm -f /work/version; mkfifo /work/version", "the tool's version: is a FIFO"),
]


@pytest.mark.parametrize("numbers", [range(3), *nightly(range(3, len(PREPARING)))])
def test_a_tool_that_has_the_host_copied_or_read_when_it_is_prepared(
    host: Host, engine: Engine, numbers: range
) -> None:
    cases = "\n".join(f"{number})\n{script}\n;;" for number, (script, _) in enumerate(PREPARING))
    image = host.image(engine, python3=f'case "$ATTACK" in\n{cases}\nesac\ntrue')
    tool = {"name": "brainextractor", "brainextractor": {"image": image}}
    for number in numbers:
        host.configure(["01"], tool=tool, containers={"environment": {"ATTACK": str(number)}})
        host.run("results/index/tool.json").failed().says(PREPARING[number][1])
        assert not list(host.project.folder.glob("neurotier-*/image-store/*.cache"))


def test_an_image_whose_mount_points_are_links(host: Host, engine: Engine) -> None:
    root = tiny_root(host.folder)
    for name in ("work", "out", "data", ".neurotier"):
        (root / name).symlink_to(host.trap)
    image = host.image(engine, "echo x >/work/x; echo x >/out/x; ls /work/inner")
    host.configure(["01"], app={"image": image, "group": False})
    assert host.run("participants").code != 0, "what the host has there is not to be seen"


CORE_PATTERN = Path("/proc/sys/kernel/core_pattern")

TAKE_THE_MACHINE = r"""cd /work
printf '#!/bin/sh\nid -u >TRAP/payload\n' >payload
chmod 755 payload
place=$(sed -n 's/^[0-9]* [0-9]* [0-9:]* \([^ ]*\) \/work .*/\1/p' /proc/self/mountinfo)
echo "|$place/payload" >/proc/sys/kernel/core_pattern
sh -c 'kill -SEGV $$'
find /dev /proc /sys -path '/proc/[0-9]*' -prune -o ! -type d ! -type l -print | while read -r file; do
    true >>"$file" && echo "$file"
done >/out/opened
true </dev/tty && echo terminal >>/out/opened
busybox unshare -U -m true && echo mounted >>/out/opened
cat /proc/*/environ /proc/*/task/*/environ >/out/environ
true"""
"""What a container of root's would do: have a program of its own run by the machine when another one crashes, open all
that the kernel lets root change, and the terminal, which takes input from whoever holds it open; mount something in a
user namespace of its own, as control groups can be; and look for what the host's environment has."""

HARMLESS = {f"/dev/{name}" for name in ("null", "pts/ptmx", "random", "urandom", "zero")}
"""What every container may write to: what is written there goes nowhere, or to a terminal of its own."""

ON_A_TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"


@pytest.mark.alone
def test_a_container_of_roots_changes_nothing_of_the_machine(host: Host, engine: Engine) -> None:
    if os.geteuid() != 0:
        missing("only root's containers could")
    mount = 'mount -t binfmt_misc none /proc/sys/fs/binfmt_misc; exec "$@"'  # as most machines have mounted it
    on_terminal = ["unshare", "--mount", "sh", "-c", mount, "sh", sys.executable, "-c", ON_A_TERMINAL]
    project = Project(host.project.folder, lambda: on_terminal)
    host.configure(["01"], app={"image": host.image(engine, TAKE_THE_MACHINE), "group": False})
    untouched, pattern = host.untouched(), CORE_PATTERN.read_text()
    try:
        ended = project.snakemake("participants", *SWITCHES, path=Path(f"/{CANARY.decode()}"))
        assert (CORE_PATTERN.read_text(), host.untouched()) == (pattern, untouched)
    finally:
        CORE_PATTERN.write_text(pattern)
    assert ended.code == 0, ended.output
    opened = (project.results / "app/sub-01/opened").read_text().split()
    assert {*opened} <= HARMLESS, opened
    assert holding_canary(project.results) == []


def test_an_app_that_writes_out_of_its_folder_fails_alone(host: Host, engine: Engine) -> None:
    """The group level would have written through the link of one participant what another one wrote."""
    scripts = {
        "00": f"echo x >/out/x; ln -s {host.trap} /out/d; ln -s {host.secret} /out/s",
        "01": "mkdir /out/d; echo evil >/out/d/log",
    }
    (host.folder / "image").mkdir()
    image = make_tiny(engine, host.folder / "image", by_participant(scripts, "$5"))
    host.configure(scripts, app={"image": image, "name": "evil"})
    host.run("all").failed().says("neurotier: sub-00: evil: /out/d: is a link that leads out of its folder, to ")
    assert not (host.project.results / "app/sub-00").exists()
    assert (host.project.results / "app/sub-01/d/log").read_text() == "evil\n"
