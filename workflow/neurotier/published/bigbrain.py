"""The published BigBrain incrementation: the logs of GNU Parallel and of Spark as runs.

A log is one run of one condition, which its name gives: ``[spark-]EPOCH-LABEL_ITit_PROCESSEScpus_RESbb-REP.out``. Other
words between underscores (``60delay``, ``withpc``, ``npc``, ``em``) distinguish further runs and are kept as the
``variant``. A log has one row per phase, with five fields: phase, start, end, file, thread.

What the logs mean
------------------
- GNU Parallel: fields are separated by spaces, times are s since 1970. ``read_file`` is NiBabel's opening of a block,
  which loads the header and maps the rest. The block is read during ``increment_file``. ``task_duration`` is the whole
  task and is written last, so a failed task has none.
- Spark: fields are separated by commas, times are s since the driver's start. The first row, ``driver_program``, is the
  whole run, including the start of Spark. ``load_img`` turns bytes that Spark has read (which no row shows) into an
  image, ``increment_data`` adds one, ``save_incremented`` writes.
- A block without a write is incomplete, because the local SSD was full. Such blocks were read and incremented, so they
  count in the phase sums; but they have no ``task_duration``, so they do not count in the makespan.
- A block that is not in the log at all, or that was written by a task without an end, was lost: the log is partial.
- Runs with ``em`` in their name emulate a large image with 1,000 tasks over 70 files.
- Label ``tmpfs`` is Optane in Memory mode, where all memory is Optane; ``tmpfsAD`` is DRAM.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from neurotier.bigbrain.conditions import BLOCKS, GRIDS, IncrementCondition
from neurotier.bigbrain.tasks import GNU_PARALLEL, SPARK
from neurotier.core.errors import InputError
from neurotier.core.parallelism import Span, span_s
from neurotier.core.quantities import counted
from neurotier.published.conditions import APP_DIRECT, EXPERIMENT, MEMORY_MODE, condition, tier_of
from neurotier.published.skipped import UNNAMED, Skipped, skipping

HEADER, INCREMENT, WRITE, TASK, DRIVER = "load header", "read+increment", "write", "task", "driver"

EMULATED = "em"
"""Word in the names of runs whose many tasks share a few files to emulate an image larger than the device."""

LATER = "_redo"
"""End of the names of folders with runs that were repeated later, which are the ones in the paper's figures."""

NAME = re.compile(
    r"(?P<spark>spark-)?(?P<epoch>\d+)-(?P<label>[^_]+)_(?P<iterations>\d+)it_(?P<processes>\d+)cpus?"
    r"(?P<rest>(_[^_]+)*)-(?P<repetition>\d+)\.out"
)
RESOLUTION = re.compile(r"(\d+)bb")
BLOCK = re.compile(r"bigbrain_(\d+)_(\d+)_(\d+)")


def place_of(label: str) -> tuple[str, str]:
    """The device and the mode of Optane that a label in the logs stands for.

    >>> place_of("localAD"), place_of("newtier")
    (('local SSD', 'App Direct'), ('newtier', 'Memory mode'))
    """
    return EXPERIMENT["labels"].get(label, label), APP_DIRECT if label.endswith("AD") else MEMORY_MODE


@dataclass(frozen=True)
class Phase:
    """One row of a log, with times in s as logged. The block of phase ``driver`` is empty."""

    name: str
    start_s: float
    end_s: float
    block: str

    @property
    def span(self) -> Span:
        """When the phase began and ended, s."""
        return self.start_s, self.end_s

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
    condition
        Its condition, from the name of the log; the variant has the rest of the name, such as ``60delay withpc``.
    label
        The label of the device in the name of the log.
    repetition
        The number in the name of the log, from 0.
    phases
        The rows of the log, in order.
    """

    path: Path
    condition: IncrementCondition
    label: str
    repetition: int
    phases: tuple[Phase, ...]

    @property
    def makespan_s(self) -> float:
        """The makespan as published, s: latest end - earliest start of the tasks that ended; with Spark, the driver's
        time.

        A block whose write is missing therefore does not extend it at either end; :attr:`span_s` includes such blocks.
        """
        return span_s([phase.span for phase in self.named(TASK, DRIVER) or self.work])

    @property
    def span_s(self) -> float:
        """Latest end - earliest start of any phase of any block, even incomplete, s; without the start of Spark."""
        return span_s([phase.span for phase in self.work])

    @cached_property
    def work(self) -> list[Phase]:
        """The phases of blocks."""
        return self.named(HEADER, INCREMENT, WRITE)

    def named(self, *names: str) -> list[Phase]:
        """The phases with these names."""
        return [phase for phase in self.phases if phase.name in names]

    def sum_s(self, *names: str) -> float:
        """The sum of the durations of these phases over all blocks, s.

        With Spark, loading headers means turning bytes into images, and incrementing does not include reading.
        """
        return math.fsum(phase.duration_s for phase in self.named(*names))

    @property
    def mean_parallelism(self) -> float:
        """The mean number of blocks in a phase at a time, as published: the sum of the phases over the makespan."""
        return self.sum_s(HEADER, INCREMENT, WRITE) / self.makespan_s if self.makespan_s else 0.0

    @cached_property
    def blocks(self) -> list[str]:
        """The names of the blocks in the log, sorted."""
        return sorted({phase.block for phase in self.work})

    @cached_property
    def incomplete_blocks(self) -> list[str]:
        """The blocks that were read more often than written, or never written."""
        reads, writes = (Counter(phase.block for phase in self.named(name)) for name in (HEADER, WRITE))
        return [block for block in self.blocks if writes[block] < max(1, reads[block])]

    @property
    def is_emulated(self) -> bool:
        """Whether its tasks share files; each task then stands for a block."""
        return EMULATED in re.findall(r"\w+", self.condition.variant)

    @property
    def missing_blocks(self) -> int:
        """How many blocks of the image are not in the log: their tasks failed immediately, or the log is partial."""
        return max(0, self.condition.blocks - len(self.named(HEADER) if self.is_emulated else self.blocks))

    @property
    def invalid_because(self) -> str:
        """Why the log is not that of a whole run; empty if every block is in the log and every task has its end."""
        if self.missing_blocks:
            verb = "block is" if self.missing_blocks == 1 else "blocks are"
            return f"{self.missing_blocks} {verb} not in the log"
        ends = len(self.named(TASK))
        lost = len(self.named(WRITE)) // self.condition.iterations - ends if ends else 0
        return f"{counted(lost, 'task')} without an end: the log is partial" if lost > 0 else ""

    @property
    def block_bytes(self) -> int:
        """Size of a block, bytes."""
        return self.condition.block_bytes // self.condition.blocks

    @property
    def data_bytes(self) -> int:
        """Size of the image times the iterations, bytes: D of the model."""
        return self.condition.block_bytes * self.condition.iterations


def find_runs(root: Path, skipped: list[Skipped]) -> list[BlockRun]:
    """Read all runs at or below a path, sorted by condition, then by repetition; other logs are added to ``skipped``.

    Raises
    ------
    InputError
        If the path does not exist.
    """
    runs = list[BlockRun]()
    for path in find_logs(root):
        if not NAME.fullmatch(path.name):
            skipped.append(Skipped(path, UNNAMED, "its name gives no condition"))
            continue
        with skipping(path, skipped):
            runs.append(read_run(path))

    def place(run: BlockRun) -> tuple[object, ...]:
        one = run.condition
        about = one.engine, one.parallelism, one.iterations, one.variant, place_of(run.label)[1]
        return (one.blocks, *about, run.label, run.repetition, str(run.path))

    again = {run.condition for run in runs if run.path.parent.name.endswith(LATER) and not run.invalid_because}
    return [marked_if_repeated(run, again) for run in sorted(runs, key=place)]


def find_logs(root: Path) -> Iterator[Path]:
    """The files ``*.out`` at or below a path, sorted, without storage benchmarks and hidden files."""
    if not root.exists():
        raise InputError("is not there", root, "give a checkout of big-data-lab-team/paper-memory-storage")
    for path in [root] if root.is_file() else sorted(root.rglob("*.out")):
        hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
        if path.is_file() and not hidden and not path.name.endswith("diskbench.out"):
            yield path


def marked_if_repeated(run: BlockRun, again: Collection[IncrementCondition]) -> BlockRun:
    """The run, marked as a variant if it was repeated later, since the paper's figures show the later one."""
    folder = run.path.parent.name
    if run.invalid_because or folder.endswith(LATER) or run.condition not in again:
        return run
    variant = ", ".join(filter(None, (run.condition.variant, f"in {folder}")))
    return replace(run, condition=replace(run.condition, variant=variant))


def read_run(path: Path) -> BlockRun:
    """Read a log; raises ``ValueError`` with the reason if its name gives no condition, or if it is not whole."""
    match = NAME.fullmatch(path.name)
    if match is None:
        raise ValueError("is not named as the published logs are: [spark-]EPOCH-LABEL_ITit_PROCESSEScpus_RESbb-REP.out")
    engine = SPARK if match["spark"] else GNU_PARALLEL
    phases = tuple(read_phases(path.read_text(encoding="ascii"), engine))
    processes, iterations, repetition = map(int, match.group("processes", "iterations", "repetition"))
    words = [word for word in match["rest"].split("_") if word]
    resolutions = [int(bb[1]) for word in words if (bb := RESOLUTION.fullmatch(word))]
    resolution_um = resolutions[0] if resolutions else resolution_of({phase.block for phase in phases} - {""})
    if resolution_um not in BLOCKS:
        raise ValueError(f"is of a resolution of {resolution_um} um, not of {' or '.join(map(str, BLOCKS))}")
    variant = " ".join(word for word in words if not RESOLUTION.fullmatch(word))
    several = f"{iterations} iterations" if iterations != 1 else ""
    about = tier_of(*place_of(match["label"])), iterations, ", ".join(filter(None, (several, variant)))
    return BlockRun(path, condition(resolution_um, engine, processes, *about), match["label"], repetition, phases)


def read_phases(text: str, engine: str) -> Iterator[Phase]:
    """The rows of a log; ``ValueError`` says which is wrong and why."""
    if not text.strip():
        raise ValueError("is empty")
    if not text.endswith("\n"):
        raise ValueError("ends within a line: it is not whole")
    block_of, names = dict[str, str](), EXPERIMENT["phases"][engine]
    for number, line in enumerate(text.splitlines(), start=1):
        fields = line.split("," if engine == SPARK else None)
        try:
            name, start, end, file, thread = fields
        except ValueError:
            raise ValueError(f"line {number} has {len(fields)} fields, not 5") from None
        if name not in names:
            raise ValueError(f"line {number}: {name!r} is not a phase of {engine}")
        phase = names[name]
        if phase not in (TASK, DRIVER):
            block_of[thread] = file.rpartition("-")[2]  # written blocks are named inc-BLOCK
        # the row of a task does not name its block, which is that of the previous rows of its thread
        block = "" if phase == DRIVER else block_of.get(thread, "")
        try:
            start_s, end_s = float(start), float(end)
        except ValueError:
            start_s = end_s = math.nan
        if not math.isfinite(start_s + end_s):
            raise ValueError(f"line {number}: {start!r} and {end!r} are not times in s")
        if end_s < start_s:
            raise ValueError(f"line {number}: {name} ends before it starts")
        yield Phase(phase, start_s, end_s, block)


def resolution_of(blocks: set[str]) -> int:
    """The resolution, um, from the voxels where the blocks begin."""
    corners = [tuple(map(int, match.groups())) for block in blocks if (match := BLOCK.match(block))]
    for resolution_um, grid in GRIDS.items():
        if corners and all(at % step == 0 for corner in corners for at, step in zip(corner, grid, strict=True)):
            return resolution_um
    raise ValueError("gives its resolution neither in its name nor in its blocks")
