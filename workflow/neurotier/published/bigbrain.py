"""The published BigBrain incrementation: the logs of GNU Parallel and of Spark as runs.

A log is one run of one condition. Its name tells which: ``[spark-]EPOCH-LABEL_ITit_PROCESSEScpus_RESbb-REP.out``; what
else stands between underscores (``60delay``, ``withpc``, ``npc``, ``em``) sets a run apart and is kept as its
``variant``. One row per phase, five fields: phase, start, end, file, thread.

What the logs mean
------------------
- GNU Parallel: fields are parted by spaces, times are s since 1970. ``read_file`` is NiBabel's opening of a block: it
  loads the header and maps the rest. The block is read within ``increment_file``. ``task_duration`` is the whole task
  and is written last, so a task that failed has none.
- Spark: fields are parted by commas, times are s since the driver's start. The first row, ``driver_program``, is the
  whole run, the start of Spark included. ``load_img`` turns bytes that Spark has read (which no row shows) into an
  image, ``increment_data`` adds one, ``save_incremented`` writes.
- A block without a write is incomplete: the local SSD was full. Such blocks were read and incremented, so they count
  in the phase sums, but having no ``task_duration`` they do not count in the makespan.
- A block that is not in the log at all, or that was written by a task without an end, was lost: the log is a part.
- Runs with ``em`` in their name emulate a large image: 1,000 tasks over 70 files.
- Label ``tmpfs`` is Optane in Memory mode, where all memory is Optane; ``tmpfsAD`` is DRAM.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from neurotier.bigbrain.image import BLOCK_BYTES, BLOCKS, GRIDS
from neurotier.core.errors import InputError
from neurotier.core.quantities import counted
from neurotier.published.skipped import UNNAMED, Skipped

GNU_PARALLEL, SPARK = "gnu-parallel", "spark"
MEMORY_MODE, APP_DIRECT = "Memory mode", "App Direct"
HEADER, INCREMENT, WRITE, TASK, DRIVER = "load header", "read+increment", "write", "task", "driver"

NAMES_IN_LOGS = {
    GNU_PARALLEL: {"read_file": HEADER, "increment_file": INCREMENT, "write_file": WRITE, "task_duration": TASK},
    SPARK: {"load_img": HEADER, "increment_data": INCREMENT, "save_incremented": WRITE, "driver_program": DRIVER},
}
"""Our names of an engine's phases."""

DEVICES = {"tmpfs": "Optane", "tmpfsAD": "DRAM", "optaneAD": "Optane"} | {
    f"{label}{mode}": device for label, device in (("local", "local SSD"), ("isilon", "Isilon")) for mode in ("", "AD")
}
"""Device by the label in a log's name; other labels are shown as they are."""

EMULATED = "em"
"""Word in the name of a run whose many tasks share a few files, so that an image larger than the device is emulated."""

NAME = re.compile(
    r"(?P<spark>spark-)?(?P<epoch>\d+)-(?P<label>[^_]+)_(?P<iterations>\d+)it_(?P<processes>\d+)cpus?"
    r"(?P<rest>(_[^_]+)*)-(?P<repetition>\d+)\.out"
)
RESOLUTION = re.compile(r"(\d+)bb")
BLOCK = re.compile(r"bigbrain_(\d+)_(\d+)_(\d+)")
FIX = "fetch the log again from the public repository, or give the path of a folder without it"


def place_of(label: str) -> tuple[str, str]:
    """Device, and mode of Optane, by a label in the logs.

    >>> place_of("localAD"), place_of("newtier")
    (('local SSD', 'App Direct'), ('newtier', 'Memory mode'))
    """
    return DEVICES.get(label, label), APP_DIRECT if label.endswith("AD") else MEMORY_MODE


@dataclass(frozen=True)
class Phase:
    """One row of a log; times in s, as logged. The block of phase ``driver`` is empty."""

    name: str
    start_s: float
    end_s: float
    block: str

    @property
    def duration_s(self) -> float:
        """Time that the phase took, s."""
        return self.end_s - self.start_s


@dataclass(frozen=True)
class BlockRun:
    """One run of the incrementation.

    Attributes
    ----------
    path
        Its log.
    engine
        ``gnu-parallel`` or ``spark``.
    resolution_um
        40 or 20.
    device, mode
        Where the blocks are read and written, and how Optane is configured.
    label
        The device's name in the name of the log.
    processes
        Processes that were asked for.
    iterations
        How often each block is incremented.
    repetition
        Number in the name of the log, from 0.
    variant
        What else the name says, such as ``60delay withpc``; empty for the runs of the paper's figures.
    phases
        Rows of the log, in order.
    """

    path: Path
    engine: str
    resolution_um: int
    device: str
    mode: str
    label: str
    processes: int
    iterations: int
    repetition: int
    variant: str
    phases: tuple[Phase, ...]

    @property
    def makespan_s(self) -> float:
        """Makespan as published, s: latest end - earliest start of the tasks that ended; of Spark, the driver's time.

        Reading a block whose write is missing is therefore left out at both ends; :attr:`span_s` has it.
        """
        return span_s(self.named(TASK, DRIVER) or self.work)

    @property
    def span_s(self) -> float:
        """Latest end - earliest start of any phase of any block, s: incomplete ones too, but no start of Spark."""
        return span_s(self.work)

    @cached_property
    def work(self) -> tuple[Phase, ...]:
        """The phases of blocks."""
        return tuple(self.named(HEADER, INCREMENT, WRITE))

    def named(self, *names: str) -> list[Phase]:
        """The phases of some names."""
        return [phase for phase in self.phases if phase.name in names]

    def sum_s(self, *names: str) -> float:
        """Sum of the durations of phases over all blocks, s."""
        return math.fsum(phase.duration_s for phase in self.named(*names))

    @property
    def header_s(self) -> float:
        """Sum over blocks of loading headers, s; of Spark, of turning bytes into images."""
        return self.sum_s(HEADER)

    @property
    def increment_s(self) -> float:
        """Sum over blocks of reading and incrementing, s; of Spark, of incrementing alone."""
        return self.sum_s(INCREMENT)

    @property
    def write_s(self) -> float:
        """Sum over blocks of writing, s."""
        return self.sum_s(WRITE)

    @property
    def mean_parallelism(self) -> float:
        """Mean number of blocks in a phase at once, as published: the phases' sum over the makespan."""
        return self.sum_s(HEADER, INCREMENT, WRITE) / self.makespan_s if self.makespan_s else 0.0

    @cached_property
    def blocks(self) -> tuple[str, ...]:
        """Names of the blocks that the log knows, sorted."""
        return tuple(sorted({phase.block for phase in self.work}))

    @cached_property
    def incomplete_blocks(self) -> tuple[str, ...]:
        """Blocks that were read at least once more than written."""
        reads = Counter(phase.block for phase in self.named(HEADER))
        writes = Counter(phase.block for phase in self.named(WRITE))
        return tuple(block for block in self.blocks if writes[block] < max(1, reads[block]))

    @property
    def is_emulated(self) -> bool:
        """Whether its tasks share files: a task stands for a block then."""
        return EMULATED in self.variant.split()

    @property
    def missing_blocks(self) -> int:
        """How many blocks of the image the log does not know: their tasks failed at once, or the log is a part."""
        known = len(self.named(HEADER)) if self.is_emulated else len(self.blocks)
        return max(0, BLOCKS[self.resolution_um] - known)

    @property
    def lost_ends(self) -> int:
        """How many tasks of GNU Parallel have written a block, and have no end in the log."""
        ends = len(self.named(TASK))
        return max(0, len(self.named(WRITE)) // self.iterations - ends) if ends else 0

    @property
    def invalid_because(self) -> str:
        """Why the log is not that of a whole run; empty if it is."""
        if self.missing_blocks:
            verb = "block is" if self.missing_blocks == 1 else "blocks are"
            return f"{self.missing_blocks} {verb} not in the log"
        return f"{counted(self.lost_ends, 'task')} without an end: the log is a part" if self.lost_ends else ""

    @property
    def is_whole(self) -> bool:
        """Whether the log can be that of a whole run: every block is in it, and no task lost its end."""
        return not self.invalid_because

    @property
    def block_bytes(self) -> int:
        """Size of a block, bytes."""
        return BLOCK_BYTES[self.resolution_um]

    @property
    def data_bytes(self) -> int:
        """Size of the image, bytes: D of the model, once per iteration."""
        return self.block_bytes * BLOCKS[self.resolution_um] * self.iterations


@dataclass(frozen=True)
class Found:
    """What a folder holds: runs, and what looks like a log and is none, with the reason."""

    runs: list[BlockRun] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def find_runs(root: Path) -> Found:
    """All runs at or below a path, by condition and repetition; a log that cannot be read is skipped.

    Raises
    ------
    InputError
        If the path is not there.
    """
    contents = Found()
    for path in find_logs(root):
        if not NAME.fullmatch(path.name):
            contents.skipped.append(Skipped(path, UNNAMED, "its name does not tell a condition"))
            continue
        try:
            contents.runs.append(read_run(path))
        except (InputError, OSError) as error:
            contents.skipped.append(Skipped.damaged(path, error))
    contents.runs.sort(key=order)
    return contents


def find_logs(root: Path) -> Iterator[Path]:
    """Files ``*.out`` at or below a path in order, but for storage benchmarks and what is hidden."""
    if not root.exists():
        raise InputError("is not there", str(root), "give a checkout of big-data-lab-team/paper-memory-storage")
    for path in [root] if root.is_file() else sorted(root.rglob("*.out")):
        hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
        if path.is_file() and not hidden and not path.name.endswith("diskbench.out"):
            yield path


def order(run: BlockRun) -> tuple[object, ...]:
    """Place of a run among others: as the paper's figures, repetitions last."""
    condition = (run.resolution_um, run.engine, run.processes, run.iterations, run.variant, run.mode, run.label)
    return (-condition[0], *condition[1:], run.repetition, str(run.path))


def read_run(path: Path) -> BlockRun:
    """Read a log.

    Raises
    ------
    InputError
        If its name tells no condition, or it is not whole.
    """
    match = NAME.fullmatch(path.name)
    if match is None:
        fix = "a log is named [spark-]EPOCH-LABEL_ITit_PROCESSEScpus_RESbb-REP.out"
        raise InputError("is not named as the published logs are", str(path), fix)
    engine = SPARK if match["spark"] else GNU_PARALLEL
    try:
        phases = tuple(read_phases(path.read_text(encoding="ascii"), engine))
        resolution_um, variant = variant_of(match["rest"], phases)
    except UnicodeDecodeError:
        raise InputError("is not text", str(path), FIX) from None
    except ValueError as error:
        raise InputError(str(error), str(path), FIX) from None
    (device, mode), label = place_of(match["label"]), match["label"]
    processes, iterations, repetition = map(int, match.group("processes", "iterations", "repetition"))
    return BlockRun(
        path, engine, resolution_um, device, mode, label, processes, iterations, repetition, variant, phases
    )


def read_phases(text: str, engine: str) -> Iterator[Phase]:
    """The rows of a log; ``ValueError`` says which is wrong and why."""
    if not text.strip():
        raise ValueError("is empty")
    if not text.endswith("\n"):
        raise ValueError("ends within a line: it is not whole")
    block_of: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        fields = line.split("," if engine == SPARK else None)
        try:
            name, start, end, file, thread = fields
        except ValueError:
            raise ValueError(f"line {number} has {len(fields)} fields, not 5") from None
        if name not in NAMES_IN_LOGS[engine]:
            raise ValueError(f"line {number}: {name!r} is no phase of {engine}")
        phase = NAMES_IN_LOGS[engine][name]
        if phase not in (TASK, DRIVER):
            block_of[thread] = file.rpartition("-")[2]  # written blocks are named inc-BLOCK
        # the row of a task names no block: it is that of its thread's rows before it
        block = "" if phase == DRIVER else block_of.get(thread, "")
        try:
            start_s, end_s = float(start), float(end)
        except ValueError:
            raise ValueError(f"line {number}: {start!r} and {end!r} are no times in s") from None
        if not (math.isfinite(start_s) and math.isfinite(end_s)):
            raise ValueError(f"line {number}: {start!r} and {end!r} are no times in s")
        if end_s < start_s:
            raise ValueError(f"line {number}: {name} ends before it starts")
        yield Phase(phase, start_s, end_s, block)


def variant_of(rest: str, phases: Iterable[Phase]) -> tuple[int, str]:
    """Resolution, um, and what else the rest of a log's name says; the first logs' names tell no resolution.

    >>> variant_of("_40bb", []), variant_of("_60delay_withpc", [Phase(HEADER, 0, 1, "bigbrain_769_0_1388.nii")])
    ((40, ''), (40, '60delay withpc'))
    """
    words = [word for word in rest.split("_") if word]
    resolutions = [int(match[1]) for word in words if (match := RESOLUTION.fullmatch(word))]
    others = " ".join(word for word in words if not RESOLUTION.fullmatch(word))
    resolution_um = resolutions[0] if resolutions else resolution_of({phase.block for phase in phases} - {""})
    if resolution_um not in BLOCKS:
        raise ValueError(f"is of a resolution of {resolution_um} um, not of {' or '.join(map(str, BLOCKS))}")
    return resolution_um, others


def resolution_of(blocks: set[str]) -> int:
    """Resolution, um, by where the blocks begin."""
    corners = [tuple(map(int, match.groups())) for block in blocks if (match := BLOCK.match(block))]
    for resolution_um, grid in GRIDS.items():
        if corners and all(at % step == 0 for corner in corners for at, step in zip(corner, grid, strict=True)):
            return resolution_um
    raise ValueError("tells its resolution neither by its name nor by its blocks")


def span_s(phases: Sequence[Phase]) -> float:
    """Latest end - earliest start, s; 0 of none."""
    return max(phase.end_s for phase in phases) - min(phase.start_s for phase in phases) if phases else 0.0
