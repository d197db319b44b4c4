"""Prepared projects: made once per campaign, copied for each trial, and what an undisturbed run makes of them."""

from __future__ import annotations

import itertools
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypeVar

import yaml
from container_images import Engine, make_tiny, tiny_root
from snakemake.utils import update_config
from support import ENVIRONMENT, Project, checksums, git, plain_dataset, save_image, small_head, t1w

from faults import strace
from faults.processes import environment_of, run, side_by_side
from faults.rooms import ANNEX_DISK_BYTES, DISK_BYTES, Room, copy_folder, enter, make_disk

T = TypeVar("T")

NUMBERED = re.compile(r"\d[\w-]*")
"""Numbers and identifiers of runs and shares in names of files."""

OF_DEVICE = re.compile(r"(/points/.*)_[0-9a-f]{8}\.json$")
"""Name of a measured point, which is of a device: each room's disk is on a loop device of another number."""

LABELS = ("a", "b", "c")
PARTICIPANTS = tuple(f"sub-{label}" for label in LABELS)
STAGES = {
    "fresh": (),
    "indexed": ("results/index/images.tsv", "results/index/tool.json"),
    "ready": ("ready",),
    "participants": ("participants",),
    "all": ("all",),
}
"""How far a prepared project has come, and what was asked for last: nothing done; dataset and tool known; images there,
too; everyone analysed; report written."""


@dataclass(frozen=True)
class Kind:
    """A kind of prepared project.

    Attributes
    ----------
    annex
        Its dataset is a DataLad one, which is cloned and fetched; else a plain folder.
    disk
        The project lies on a small ext4 of its own; else in memory.
    scratch
        Work has a small tier of its own.
    recorded
        What a run calls is recorded, for faults at these calls.
    saved
        Derivatives are saved as DataLad datasets.
    contained
        The tool is in a container image.
    file_system
        Of the disk.
    target
        What is asked for; empty for the analyses, alone or with all that is made of them.
    run_s
        How long that takes on a quiet machine, about, s.
    sections
        Further sections of its configuration.
    """

    name: str
    annex: bool = False
    disk: bool = False
    scratch: bool = False
    recorded: bool = False
    saved: bool = False
    contained: bool = False
    file_system: str = "ext4"
    target: str = ""
    run_s: float = 0.0
    sections: Mapping[str, object] = field(default_factory=dict, compare=False)

    @property
    def stages(self) -> list[str]:
        """How far such projects come; whoever has a plain folder has its images, too."""
        if self.target:
            return ["fresh", self.target]
        return [stage for stage in STAGES if self.annex or stage != "indexed"]

    @property
    def words(self) -> list[str]:
        """What its commands have besides."""
        return ["--sdm", "apptainer"] if self.contained else []

    @property
    def before_analysis(self) -> str:
        """The stage at which the next thing to do concerns a participant."""
        return "fresh" if self.target else "indexed" if self.annex else "ready"

    def configuration(self, room: Room) -> dict[str, object]:
        """What the project's configuration says."""
        tiers = {
            "local": {"path": ".", "kind": "block" if self.disk else "tmpfs"},
            "tmpfs": {"path": str(room.at), "kind": "tmpfs"},
        }
        settings: dict[str, object] = {
            "dataset": {"source": str(room.source), "get_backoff_s": 0.1},
            "tool": {"name": "bet"},
            "tiers": tiers,
            "results_dataset": self.saved,
        }
        placement = dict.fromkeys(("dataset", "work", "images", "results"), "local")
        if self.scratch:
            tiers["scratch"] = {"path": str(room.scratch), "kind": "tmpfs"}
            placement["work"] = "scratch"
        if self.disk and not self.annex:  # a plain folder has to lie on its tier
            placement["dataset"] = "tmpfs"
        settings["placement"] = placement
        if self.contained:
            own = {
                "command": "take {input} {output}",
                "mask": "mask.nii.gz",
                "image": str(image_folder(room) / "tiny.sif"),
            }
            settings["tool"] = {"name": "contained", "contained": own}
        update_config(settings, self.sections)
        return settings


def other(
    name: str, target: str, run_s: float, sections: Mapping[str, object], annex: bool = False, scratch: bool = False
) -> Kind:
    """A kind of project, on a disk, of which something else than analyses is asked for."""
    return Kind(name, annex, disk=True, scratch=scratch, target=target, run_s=run_s, sections=sections)


PLAIN = Kind("plain", recorded=True)
ANNEX = Kind("annex", annex=True)
DISK = Kind("disk", disk=True)
ANNEX_DISK = Kind("annex-disk", annex=True, disk=True)
SAVED_DISK = Kind("saved-disk", annex=True, disk=True, saved=True)
SCRATCH = Kind("scratch", scratch=True)
OTHER_DISKS = tuple(
    Kind(f"{'saved' if saved else 'annex'}-{file_system}", annex=True, disk=True, saved=saved, file_system=file_system)
    for file_system in ("xfs", "btrfs")
    for saved in (False, True)
)

DROPPING = Kind("dropping", annex=True, disk=True, sections={"dataset": {"drop": True}})
UNDISTURBED = {"validity": {"others_cpu_share": 1}}
"""Other trials run beside: that makes no run invalid."""

CONDITIONS = {
    "placements": {"here": {}, "there": {"work": "scratch"}},
    "parallelism": [2],
    "cache": ["as found"],
    "repetitions": 1,
}
PROBE = {"time_s": 1, "file_mib": 16, "repetitions": 1, "streams": 1}
EXCHANGE = {"writers": [1], "readers": [1], "bytes": "64 KiB", "repetitions": 3}
STEPS = {"tiers": ["local"], "engines": ["adios2-bp5"], "steps": 2, "sets": {"a": EXCHANGE}}
WRITERS = {"tiers": ["local"], "writers": [1, 2], "rate": "100 kB", "seconds": 1}
BLOCKS = {"count": 2, "scale": 0.02, "iterations": 2, "predict": False}
OTHERS = (
    DROPPING,
    Kind("contained", disk=True, contained=True),
    other("campaign", "comparison", 20, UNDISTURBED | {"campaign": CONDITIONS}, annex=True, scratch=True),
    other("advise", "advise", 20, UNDISTURBED | {"probe": PROBE}, annex=True),
    other("staging", "staging", 8, {"staging": STEPS}),
    other("daq", "daq", 6, {"daq": WRITERS}),
    other("bigbrain", "bigbrain", 10, {"bigbrain": BLOCKS}),
)
"""Projects that are not about a plain run: what they measure is kept, piece by piece."""


@dataclass(frozen=True)
class Reference:
    """What an undisturbed run left: contents of derivatives and tables, names of everything else."""

    derivatives: dict[str, str]
    tables: dict[str, str]
    names: frozenset[str]


@dataclass
class Prepared:
    """What a campaign prepared; trials copy from it."""

    room: Room
    references: dict[tuple[str, str], Reference] = field(default_factory=dict)
    calls: dict[str, list[strace.Call]] = field(default_factory=dict)

    def folder(self, kind: Kind, stage: str) -> Path:
        return self.room.base / f"prepared/{kind.name}-{stage}"


def prepare(room: Room, kind: Kind) -> tuple[dict[str, Reference], list[strace.Call]]:
    """Make a kind of project up to each stage; references by stage, and what its run calls, if that is recorded."""
    prepared = Prepared(room)
    make_fresh(room, kind, prepared.folder(kind, "fresh"))
    references, calls = {}, list[strace.Call]()
    for before, stage in itertools.pairwise(kind.stages):
        copy_folder(prepared.folder(kind, before), prepared.folder(kind, stage))
        references[stage] = in_room(room, prepared.folder(kind, stage), partial(undisturbed, room, kind, stage))
    if kind.recorded:
        copy = prepared.folder(kind, "recording")
        copy_folder(prepared.folder(kind, "ready"), copy)
        calls = in_room(room, copy, partial(record_calls, room))
        shutil.rmtree(copy)
    return references, calls


def make_fresh(room: Room, kind: Kind, folder: Path) -> None:
    """A project in which nothing has been done, and its dataset."""
    folder.mkdir(parents=True)
    plain_dataset(folder / "source", {t1w(label): small_head(seed) for seed, label in enumerate(LABELS)})
    if kind.scratch:
        (folder / "scratch").mkdir()
    if kind.disk:
        (folder / "project").mkdir()
        make_disk(folder / "disk.img", ANNEX_DISK_BYTES if kind.annex else DISK_BYTES, kind.file_system)
    in_room(room, folder, lambda: fill_fresh(room, kind))


def fill_fresh(room: Room, kind: Kind) -> None:
    if kind.annex:  # git-annex notes the folder's path
        git(room.source, "init", "-q", "-b", "main")
        git(room.source, "annex", "init", "-q")
        git(room.source, "-c", "annex.largefiles=include=*.nii.gz", "annex", "add", "-q", ".")
        git(room.source, "commit", "-q", "-m", "three heads")
    if kind.contained:
        folder = image_folder(room)
        save_image(tiny_root(folder) / "opt/mask.nii.gz", (small_head() > 400).astype("uint8"))
        program = "cp /opt/mask.nii.gz $2"
        engine = shutil.which("apptainer", path=ENVIRONMENT["PATH"]) or "apptainer"
        make_tiny(Engine(engine), folder, programs={"take": program})
    Project.at(room.project).own.write_text(yaml.safe_dump(kind.configuration(room)))


def image_folder(room: Room) -> Path:
    """Where the container image lies that a project names."""
    return room.at / "image"


def undisturbed(room: Room, kind: Kind, stage: str) -> Reference:
    """Run up to a stage; what it leaves."""
    ended = run(
        [*snakemake(*STAGES.get(stage, (stage,))), *kind.words],
        room.project,
        environment_of(preparing(room)),
        room.at / "said",
        patience_s=300,
    )
    if ended.code:
        raise RuntimeError(f"an undisturbed run failed:\n{ended.output}")
    (room.at / "said").unlink()
    return reference_of(room)


def record_calls(room: Room) -> list[strace.Call]:
    """What a run calls, for faults at system calls; the room is at its stage."""
    log = room.at / "recorded"
    run(
        [*strace.recording(log), *snakemake("participants")],
        room.project,
        environment_of(preparing(room)),
        room.at / "said",
    )
    return strace.calls_of(log, room.project)


def preparing(room: Room) -> str:
    """What marks the processes that prepare for a campaign."""
    return f"prepare-{room.base.name}"


def reference_of(room: Room) -> Reference:
    """What lies in the results folder now."""
    derivatives = derivatives_in(room)
    tables = {
        str(path.relative_to(room.results)): path.read_text()
        for path in sorted(room.results.rglob("*.tsv"))
        if "figures" not in path.parts and not path.name.startswith("joblog.")  # GNU parallel's own log
    }
    return Reference(derivatives, tables, frozenset(names_in(room.results)))


def derivatives_in(room: Room) -> dict[str, str]:
    """SHA-256 of every file of the derivatives, but for what is each dataset's own: its repository and identifier."""
    folder = room.results / "derivatives"
    found = checksums(folder) if folder.exists() else {}
    return {name: checksum for name, checksum in found.items() if {".git", ".datalad"}.isdisjoint(Path(name).parts)}


def names_in(results: Path) -> list[str]:
    """Names of everything in a results folder but logs, repositories and Snakemake's own, less the numbers of runs and
    devices."""
    names = set()
    for path in results.rglob("*"):
        name = path.relative_to(results)
        if path.is_dir() or {"logs", ".git"} & {*name.parts} or path.name == ".snakemake_timestamp":
            continue
        names.add(NUMBERED.sub("*", str(name)) if "state" in name.parts else OF_DEVICE.sub(r"\1", str(name)))
    return sorted(names)


def snakemake(*targets: str) -> list[str]:
    """The command of a whole-workflow trial."""
    return [sys.executable, "-m", "snakemake", *targets, "--cores", "2", "--configfile", "own.yaml"]


def in_room(room: Room, folder: Path, function: Callable[[], T]) -> T:
    """Call a function in a child process that has entered a room; its value."""

    def entered() -> T:
        enter(room, folder)
        return function()

    ((_, answer),) = side_by_side({folder.name: entered}, folder.parent)
    if not answer:
        raise RuntimeError(f"could not prepare {folder.name}")
    return answer[0]
