"""Change one constant or operator of the library at random, many times, and see whether its unit tests notice.

Each mutant is tried in a copy of this checkout by the examples and unit tests that call its function, or, of what is in
none, by those that import its module, until one fails. Prints each, and how many of each room survive; exit 1 if more
than one in twenty of all does. Mutants that change nothing (:data:`KNOWN`) are not tried. Some seconds each, and before
them one or two minutes to find out which test calls what::

    python tests/mutants.py --count 100 --seed 1 model advice
"""

from __future__ import annotations

import argparse
import ast
import importlib
import itertools
import json
import multiprocessing
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import noted_calls
import psutil
import pytest
from planted_bugs import ROOT, copy_of_checkout

LIBRARY = Path("workflow/neurotier")
MAY_SURVIVE = 0.05
AT_ONCE = 2

PROTECTED = "NEUROTIER_MUTANTS_ARE_PROTECTED"
"""Set where :data:`READ_ONLY` holds."""

READ_ONLY = """
set -e
own=$1 checkout=$2
shift 2
mounted=$(findmnt --raw --noheadings --output TARGET)
mkdir --parents "$own/tmp" "$own/var/tmp/home" "$own$checkout"
chmod 1777 "$own/tmp" "$own/var/tmp"
mount --bind "$checkout" "$own$checkout"  # it may lie in a temporary folder
mount -o remount,bind,ro "$own$checkout"
mount --rbind "$own/tmp" /tmp
mount --rbind "$own/var/tmp" /var/tmp
for folder in $mounted; do
    case $folder in /proc* | /sys* | /dev* | /run* | /tmp* | /var/tmp*) continue ;; esac
    mount -o remount,bind,ro "$folder"
done
mount -t tmpfs -o mode=1777 empty /dev/shm
cd "$checkout"
HOME=/var/tmp/home setpriv --inh-caps=-all --ambient-caps=-all "$@"
"""
"""Has a command find everything read-only, and temporary folders of its own in which there is nothing of others: a
mutant has deleted a checkout."""

PATIENCE, PATIENCE_S = 4.0, 5.0
"""A mutant never ends, and is noticed, if its trials take so many times as long as without it, and so many s."""

LONGEST_S, ENOUGH_S = 30.0, 120.0
"""A test that takes longer is tried on no mutant, and the quickest that take so long together are enough, s."""

LOADED = ("nibabel", "numpy", "pandas", "psutil", "scipy.optimize", "yaml")
"""What most unit tests load, and takes long: every trial is a fork of a process that has it."""

ANY = "a number that was chosen: twice as much does as well"
NONE = "no process ends with 128: signals are numbered from 1"
NEVER = "of numbers that are never equal"
SET = "it is set before it is used"
ON_AS_MANY = "every process here may run on as many"
ALIKE = "all rows are of one tier"
KNOWN: dict[str, str] = {
    'core/files.py: write_text(path, json.dumps(data, indent=2) + "\\n", durable): 2 -> (4)': "looks alone",
    "core/foreign.py: TEXT_BYTES = 1 << 20: 1 -> (2)": ANY,
    "core/foreign.py: TEXT_BYTES = 1 << 20: 20 -> (40)": ANY,
    "core/foreign.py: CHUNK_BYTES = 1 << 20: 1 -> (2)": ANY,
    "core/foreign.py: DEEPEST = 100: 100 -> (200)": ANY,
    "core/foreign.py: LEASE_S = 60.0: 60.0 -> (120.0)": ANY,
    "core/foreign.py: return os.sendfile(target, source, offset, 16 * CHUNK_BYTES): 16 -> (32)": ANY,
    "core/foreign.py: if time.monotonic() > deadline:: time.monotonic() > deadline -> "
    "(time.monotonic() >= deadline)": "of a clock that is finer than any sleep",
    "core/libc.py: SYNC_FILE_RANGE_WRITE = 2: 2 -> (4)": "it is faster, and no other",
    "run/journal.py: LARGEST_BYTES = 16 << 20: 16 -> (32)": ANY,
    "run/journal.py: LARGEST_BYTES = 16 << 20: 20 -> (40)": ANY,
    "dataset/bids.py: return sum(image.size_bytes or 0 for image in images): 0 -> (1)": "a byte of what is unknown",
    "run/pool.py: OOM_SCORE = 300: 300 -> (600)": ANY,
    "run/pool.py: return code > 128 or (self.needs.on_cluster and may_pass(code)): code > 128 -> (code >= 128)": NONE,
    "run/pool.py: return code > 128 or not self.keep_going: code > 128 -> (code >= 128)": NONE,
    "run/pool.py: return code > 128: code > 128 -> (code >= 128)": NONE,
    'run/pool.py: fits = self.tiers["dataset"].free_bytes() >= self.bytes_of([*fetching, name]) + RESERVE_BYTES: '
    'self.tiers["dataset"].free_bytes() >= self.bytes_of([*fetching, name]) + RESERVE_BYTES -> '
    "(self.tiers['dataset'].free_bytes() > self.bytes_of([*fetching, name]) + RESERVE_BYTES)": "a byte of a free tier",
    "advice/situation.py: cores = len(os.sched_getaffinity(0)): 0 -> (1)": ON_AS_MANY,
    "model/this_machine.py: ends = vars((high if where > 0 else low).tiers[served]): where > 0 -> (where >= 0)": NEVER,
    "model/fluid.py: self.begin(len(tasks) + len(jobs) + number, self.fetch(number, arrival)): len(tasks) + "
    "len(jobs) + number -> (len(tasks) + len(jobs) - number)": "an order of equals",
    "advice/predict.py: FURTHEST = math.log(10): 10 -> (20)": ANY,
    'advice/table.py: room_mb, room = limits.get("mem_mb", 1 << 60) or 1, sum(work) if free_bytes is None else '
    "max(1, free_bytes): 1 -> (2)": ANY,
    'advice/table.py: room_mb, room = limits.get("mem_mb", 1 << 60) or 1, sum(work) if free_bytes is None else '
    "max(1, free_bytes): 60 -> (120)": ANY,
    "run/pool.py: RESERVE_BYTES = 100_000_000: 100_000_000 -> (200000000)": ANY,
    "advice/calibration.py: scale = max(sizes) or 1.0  # both columns need one magnitude, or the "
    "solver calls the matrix singular: 1.0 -> (2.0)": ANY,
    "meter/usage.py: if sampler.delays and branch.misbooked_ns / 1e9 <= self.wall_s * OVERLAP_SHARE + "
    "OVERLAP_S:: branch.misbooked_ns / 1e9 <= self.wall_s * OVERLAP_SHARE + OVERLAP_S -> "
    "(branch.misbooked_ns / 1000000000.0 < self.wall_s * OVERLAP_SHARE + OVERLAP_S)": NEVER,
    "model/fluid.py: moments.append(missing / net * (1 + RELATIVE)): missing / net * (1 + RELATIVE) -> "
    "(missing / net / (1 + RELATIVE))": ANY,
    "advice/small_files.py: slower = (cost.high if where > 0 else cost.low) ** abs(where) * "
    "rng.lognormal(0.0, FILES_SPREAD): where > 0 -> (where >= 0)": NEVER,
    "meter/usage.py: self.max_rss_bytes = self.left_behind = 0: 0 -> (1)": SET,
    "model/fluid.py: reached = self.moved + RELATIVE * max(self.moved, self.rate): RELATIVE * "
    "max(self.moved, self.rate) -> (RELATIVE / max(self.moved, self.rate))": ANY,
    "advice/situation.py: page_cache=page_cache_here(0.0),: 0.0 -> (1)": "a byte of memory",
    "model/fluid.py: rate: float = 0.0: 0.0 -> (1)": SET,
    "model/fluid.py: def simulate(workload: Workload, machine: Machine, parallelism: int, seed: int = 0) -> "
    "SimulatedRun:: 0 -> (1)": ANY,
    "model/fluid.py: if not self.chunks or now_s - self.chunks[-1][0] > MERGE_S:: now_s - self.chunks[-1][0] "
    "-> (now_s + self.chunks[-1][0])": "the same, step by step",
    "meter/activity.py: self.cores = len(os.sched_getaffinity(0)): 0 -> (1)": ON_AS_MANY,
    'model/this_machine.py: costs[streams] = FileCost(cpu_s, 0.0 if is_in_memory(rows[0]["kind"]) else wait_s, '
    "*spread): 0 -> (1)": ALIKE,
    'model/this_machine.py: kind=rows[0]["kind"],: 0 -> (1)': ALIKE,
    "model/fluid.py: if dirty.throttles and inflow > dirty.rate_bytes_per_s:  # writers wait for what is "
    "written back: inflow > dirty.rate_bytes_per_s -> (inflow >= dirty.rate_bytes_per_s)": NEVER,
    "model/fluid.py: if missing * net > 0 and abs(missing) > RELATIVE * level:: abs(missing) > RELATIVE * "
    "level -> (abs(missing) >= RELATIVE * level)": NEVER,
    "meter/usage.py: if several and known_s > least_s:: known_s > least_s -> (known_s >= least_s)": NEVER,
    'model/fluid.py: for_reads, for_writes = (streams[kind] * for_one.get(kind, 0.0) for kind in ("read", '
    '"write")): 0.0 -> (1)': "no streams, whatever is theirs",
    "advice/rehearsal.py: time.sleep(max(0.0, before.time_s + SHORTEST_S - time.time())): 0.0 -> (1)": "a longer sleep",
    'advice/words.py: return bool(other["predicted_s"] > best["high_s"] and best["predicted_s"] < '
    'other["low_s"]): other["predicted_s"] > best["high_s"] -> (other[\'predicted_s\'] >= best[\'high_s\'])': NEVER,
    "run/pool.py: if (now_s := time.monotonic()) - self.said_s >= SAY_S:: (now_s := time.monotonic()) - self.said_s >= "
    "SAY_S -> ((now_s := time.monotonic()) - self.said_s > SAY_S)": NEVER,
    "meter/records.py: active_ns, overlap_ns = on_core_ns + memory_ns + storage_ns, 0: 0 -> (1)": "a nanosecond",
    "core/foreign.py: content = opened.read(limit_bytes + 1): 1 -> (2)": "one byte more tells as much",
    "meter/usage.py: several = overlap_s > self.wall_s * OVERLAP_SHARE + OVERLAP_S: overlap_s > "
    "self.wall_s * OVERLAP_SHARE + OVERLAP_S -> (overlap_s >= self.wall_s * OVERLAP_SHARE + OVERLAP_S)": NEVER,
    "core/files.py: time.sleep(0.05 if tries < 100 else 1): tries < 100 -> (tries <= 100)": "a longer pause",
    "advice/rehearsal.py: tries, processors = list[Record](), len(os.sched_getaffinity(0)): 0 -> (1)": ON_AS_MANY,
    "model/fluid.py: if missing * net > 0 and abs(missing) > RELATIVE * level:: RELATIVE * level -> "
    "(RELATIVE / level)": ANY,
    "model/fluid.py: RELATIVE = 1e-9: 1e-9 -> (2e-09)": ANY,
    'model/this_machine.py: in_memory = is_in_memory(rows[0]["kind"]): 0 -> (1)': ALIKE,
    "meter/usage.py: if (user + system) / TICKS_PER_S > self.cpu_s * (1 + UNREAPED_SHARE) + UNREAPED_S:: "
    "(user + system) / TICKS_PER_S > self.cpu_s * (1 + UNREAPED_SHARE) + UNREAPED_S -> "
    "((user + system) / TICKS_PER_S >= self.cpu_s * (1 + UNREAPED_SHARE) + UNREAPED_S)": NEVER,
    'core/files.py: lock, tries = folder.with_name(f".{folder.name}.lock"), 0: 0 -> (1)': "said 0.05 s sooner",
    'advice/table.py: "work": max(work, *copies, 0),: 0 -> (1)': "each needs more",
    "meter/records.py: self.branch(rest.parent).merge(self.pending.pop(group), 0): 0 -> (1)": "a nanosecond",
    "model/loaded.py: reads_now, writes_now = (in_flight(way, np.ones(len(streams))) > 0.5 for way in (~writes, "
    "writes)): in_flight(way, np.ones(len(streams))) > 0.5 -> (in_flight(way, np.ones(len(streams))) >= "
    "0.5)": NEVER,
    "model/machine.py: if busy <= self.cores:: busy <= self.cores -> (busy < self.cores)": "equal there by either",
    "model/fluid.py: dirty.rate_bytes_per_s = writing * tier.write_bytes_per_s if is_due else 0.0: 0.0 -> (1)": ANY,
    "model/loaded.py: return np.asarray(moved_bytes / np.maximum(end_s - start_s, 1e-9)): 1e-9 -> (2e-09)": ANY,
    "model/fluid.py: return 0 < self.dirty_bytes >= self.cache.throttling_bytes * (1 - RELATIVE): 0 -> (1)": "a byte",
    "core/files.py: time.sleep(0.05 if tries < 100 else 1): 0.05 -> (0.1)": "a longer pause",
    "core/files.py: time.sleep(0.05 if tries < 100 else 1): 1 -> (2)": "a longer pause",
    "core/foreign.py: time.sleep(0.05): 0.05 -> (0.1)": "a longer pause",
    "model/fluid.py: if oldest[1] < 1:: oldest[1] < 1 -> (oldest[1] <= 1)": NEVER,
    "model/fluid.py: return self.too_much or now_s - self.chunks[0][0] >= self.cache.expiry_s * (1 - RELATIVE): now_s "
    "- self.chunks[0][0] >= self.cache.expiry_s * (1 - RELATIVE) -> "
    "(now_s - self.chunks[0][0] > self.cache.expiry_s * (1 - RELATIVE))": NEVER,
    "model/fluid.py: self.begin(len(tasks) + len(jobs) + number, self.fetch(number, arrival)): len(tasks) + len(jobs) "
    "-> (len(tasks) - len(jobs))": "an order of equals",
    "model/prediction.py: DRAWS = 21: 21 -> (42)": ANY,
    "model/prediction.py: drawn_s = [simulate(*draw(np.random.default_rng(seed)), parallelism, seed).makespan_s for "
    "seed in range(1, DRAWS)]: 1 -> (2)": "nineteen draws do as well as twenty",
    "model/fluid.py: if missing * net > 0 and abs(missing) > RELATIVE * level:: 0 -> (1)": "a byte",
    "model/fluid.py: began_s: float = 0.0: 0.0 -> (1)": SET,
    "model/fluid.py: while self.ends and self.ends[0][0] <= reached:: self.ends[0][0] <= reached -> "
    "(self.ends[0][0] < reached)": NEVER,
    "model/fluid.py: moved: float = 0.0: 0.0 -> (1)": "what is left to move is a difference",
    "advice/rehearsal.py: TRIES = 3: 3 -> (6)": ANY,
    "core/files.py: time.sleep(0.05 if tries < 100 else 1): 100 -> (200)": "a shorter pause",
    "run/pool.py: if 0 < result.exit_code <= 128:: 0 -> (1)": "no job fails with 1",
    "advice/small_files.py: slower = (cost.high if where > 0 else cost.low) ** abs(where) * "
    "rng.lognormal(0.0, FILES_SPREAD): (cost.high if where > 0 else cost.low) ** abs(where) * "
    "rng.lognormal(0.0, FILES_SPREAD) -> ((cost.high if where > 0 else cost.low) ** abs(where) / "
    "rng.lognormal(0.0, FILES_SPREAD))": "chance is as large either way",
    "pages/comparison/verdict.py: if resident and resident.high - resident.low > CACHED_APART:: resident.high - "
    "resident.low > CACHED_APART -> (resident.high - resident.low >= CACHED_APART)": NEVER,
    "pages/comparison/verdict.py: elif contrast.paired and contrast.ends and contrast.ends[1] < 1:  # the slower one "
    "lacks fast runs: contrast.ends[1] < 1 -> (contrast.ends[1] <= 1)": NEVER,
    'pages/comparison/verdict.py: if (known.high > COLD_SHARE if known else condition.cache == "as found"): '
    "known.high > COLD_SHARE -> (known.high >= COLD_SHARE)": NEVER,
    'pages/kit/contrasts.py: runs.sort(key=lambda run: (run[0].get("start_s") or 0.0, run[0]["repetition"] or 0)): '
    "0 -> (1)": "a run of no repetition is in no block",
    "pages/kit/contrasts.py: freedom, count = sum(parts) ** 2 / spent if spent else 1.0, 0 if paired and not pairs "
    "else min(map(len, samples)): 1.0 -> (2.0)": "of an error that is rounding",
    "pages/kit/contrasts.py: return self.ends is not None and self.ends[0] > 1: self.ends[0] > 1 -> "
    "(self.ends[0] >= 1)": NEVER,
    "pages/kit/contrasts.py: noise: float = 0.0: 0.0 -> (1)": SET,
    "pages/kit/contrasts.py: ROUNDING = 1e-9: 1e-9 -> (2e-09)": ANY,
    "pages/kit/contrasts.py: go_on = found[pair].chance < level: found[pair].chance < level -> "
    "(found[pair].chance <= level)": NEVER,
}
"""Mutants, as they are printed, that no test can notice, and why."""

checkouts = multiprocessing.get_context("fork").Queue()
"""Copies of the checkout that nobody uses at the moment."""

PAIRS = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)),
    *((ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Div)),
)
OTHER: dict[type, type] = {**dict(PAIRS), **{new: old for old, new in PAIRS}}
"""What takes an operator's place."""


class Mutant(NamedTuple):
    """A file of the library, and what a piece of it becomes, by its offsets; and the first line of its function."""

    file: Path
    line: int
    text: str
    function: int
    begin: int
    end: int
    old: str
    new: str


def said(mutant: Mutant) -> str:
    """A mutant in words: its file, its line, and what becomes what."""
    return f"{mutant.file.relative_to(LIBRARY)}: {mutant.text}: {' '.join(mutant.old.split())} -> {mutant.new}"


def changed(node: ast.AST) -> ast.expr | None:
    """An expression with its constant or operator changed; None if it has none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return ast.Constant(node.value * 2 or 1)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return ast.Compare(node.left, [OTHER[type(node.ops[0])]()], node.comparators)
    if isinstance(node, ast.BinOp) and type(node.op) in OTHER:
        return ast.BinOp(node.left, OTHER[type(node.op)](), node.right)
    if isinstance(node, ast.BoolOp):
        return ast.BoolOp(OTHER[type(node.op)](), node.values)
    return node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else None


def expressions(node: ast.AST, function: int = 0) -> Iterator[tuple[ast.expr, int]]:
    """All expressions, and the first lines of their functions, or 0; not annotations, and none in f-strings, of which
    Python 3.11 gives wrong places."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or name in ("annotation", "returns") or type(child) is ast.JoinedStr:
                continue
            if isinstance(child, ast.expr):
                yield child, function
            if isinstance(child, ast.FunctionDef):
                first = child.decorator_list[0] if child.decorator_list else child
                yield from expressions(child, first.lineno)
            else:
                yield from expressions(child, function)


def mutants_of(file: Path) -> Iterator[Mutant]:
    """Every mutant of a file of the checkout."""
    text = (ROOT / file).read_bytes()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, function in expressions(ast.parse(text)):
        if (other := changed(node)) is not None:
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            shown = text.splitlines()[node.lineno - 1].decode().strip()
            yield Mutant(
                file, node.lineno, shown, function, begin, end, text[begin:end].decode(), f"({ast.unparse(other)})"
            )


def tests_that_say(*words: str) -> list[str]:
    """Files of unit tests with one of some words in them."""
    tests = {path.relative_to(ROOT).as_posix(): path.read_text() for path in (ROOT / "tests/unit").glob("test_*.py")}
    return sorted(name for name, text in tests.items() if any(word in text for word in words))


@dataclass(eq=False)
class Trials:
    """Examples, and unit tests, with what each takes, s, and which functions of the library it calls."""

    seconds: dict[str, float] = field(default_factory=dict)
    calls: dict[str, list[str]] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take down what fails."""
        self.failed += [report.nodeid] if report.failed else []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Take down what a test calls, in whatever Python process."""
        calls = Path(os.environ["NEUROTIER_CALLS"])
        calls.write_text("")
        begin_s = time.monotonic()
        noted_calls.note_calls(str(calls))
        try:
            return (yield)
        finally:
            sys.settrace(None)
            self.seconds[item.nodeid] = time.monotonic() - begin_s
            self.calls[item.nodeid] = sorted(set(calls.read_text().splitlines()))

    def of(self, mutant: Mutant) -> list[str]:
        """Those that call the function it is in, or else those that import its module, or all; the quickest first."""
        room, module, where = mutant.file.parent.name, mutant.file.stem, f"{mutant.file}:{mutant.function}"
        direct = {*tests_that_say(f"{room}.{module} import", f"{room} import {module}"), str(mutant.file)}
        chosen = [one for one, called in self.calls.items() if where in called]
        chosen = chosen or [one for one in self.calls if one.split("::")[0] in direct] or list(self.calls)
        chosen.sort(key=self.seconds.__getitem__)
        together = itertools.accumulate(self.seconds[one] for one in chosen)
        return [one for one, sum_s in zip(chosen, together, strict=True) if sum_s <= ENOUGH_S or one == chosen[0]]


def trials_for(files: Sequence[Path]) -> list[str]:
    """The files with examples and unit tests of a room's files, or of one and of the modules that import it."""
    examples = [file.as_posix() for file in files if ">>>" in (ROOT / file).read_text()]
    if len(files) > 1:
        return [*examples, *tests_that_say(*(f"from {module_of(file).rpartition('.')[0]}" for file in files))]
    importing = f"from {module_of(files[0])} import"
    users = [module_of(file) for file in files_below(".") if importing in (ROOT / file).read_text()]
    return [*examples, *tests_that_say(importing, *(f"from {user} import" for user in users))]


def module_of(file: Path) -> str:
    """The name of a module of the library."""
    return ".".join(("neurotier", *file.relative_to(LIBRARY).with_suffix("").parts))


def watched(trial: str) -> Trials:
    """A file of trials: those of it that pass without a mutant, and not too slowly."""
    checkout = checkouts.get()
    kept, notes = Path(f"{checkout}-trials.json"), checkout / "workflow" / "sitecustomize.py"
    shutil.copy(noted_calls.__file__, notes)
    outcome([trial], checkout, 3600.0, kept)
    notes.unlink()
    trials = Trials(**json.loads(kept.read_text()))
    checkouts.put(checkout)
    for one, took_s in trials.seconds.items():
        if one in trials.failed or took_s > LONGEST_S:
            print(f"left out: {one}, which {'fails without a mutant' if one in trials.failed else 'takes long'}")
            del trials.calls[one]
    return trials


def outcome(trials: Sequence[str], checkout: Path, within_s: float, kept: Path | None = None) -> int | None:
    """How pytest ends over trials in a checkout, whose library comes before the installed one; None if not in time."""
    if not (child := os.fork()):
        os.setsid()
        os.chdir(checkout)
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silent, stream)
        # a trial that is skipped catches nothing; a mutant may be as long, and as old, as the last one's compiled file
        os.environ |= {"NEUROTIER_REQUIRE_ALL": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        sys.path[0] = str(checkout / "workflow")
        os.environ |= {"PYTHONPATH": sys.path[0]} | ({"NEUROTIER_CALLS": f"{checkout}-calls"} if kept else {})
        sys.dont_write_bytecode = True
        named = ["-m", "not alone and not nightly", "-p", "no:cacheprovider", f"--basetemp={checkout}-tmp"]
        watcher = Trials()
        code = pytest.main(["-q", *([] if kept else ["-x"]), *named, *trials], plugins=[watcher] if kept else [])
        if kept:
            kept.write_text(json.dumps(vars(watcher)))
        os._exit(code)
    handle = os.pidfd_open(child)
    has_ended, _, _ = select.select([handle], [], [], within_s)
    os.close(handle)
    with suppress(ProcessLookupError):  # and what it has left running
        os.killpg(child, signal.SIGKILL)
    for mount in reversed(psutil.disk_partitions(all=True)):  # those in another before it
        if mount.mountpoint.startswith(f"{checkout}-tmp/"):
            subprocess.run(["umount", "--lazy", mount.mountpoint], check=True)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if has_ended else None


def tried(job: tuple[Mutant, list[str], float]) -> tuple[Mutant, bool]:
    """A mutant, and whether it survives trials that take so long, s: all pass."""
    mutant, chosen, seconds = job
    checkout = checkouts.get()
    file = checkout / mutant.file
    text = file.read_bytes()
    file.write_bytes(text[: mutant.begin] + mutant.new.encode() + text[mutant.end :])
    code = outcome(chosen, checkout, PATIENCE_S + PATIENCE * seconds)
    file.write_bytes(text)
    checkouts.put(checkout)
    return mutant, code == 0


def files_below(room: str) -> tuple[Path, ...]:
    """The Python files of a room, or one file."""
    place = LIBRARY / room
    return (place,) if place.suffix else tuple(sorted(one.relative_to(ROOT) for one in (ROOT / place).rglob("*.py")))


def run_protected(command: Sequence[str]) -> int:
    """Run a command where :data:`READ_ONLY` holds; returns its exit code."""
    space = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-current-user", "--keep-caps"])]
    with tempfile.TemporaryDirectory(prefix="mutants-", dir="/var/tmp") as own:
        guarded = [*space, "sh", "-c", READ_ONLY, "sh", own, str(ROOT), *command]
        return subprocess.run(guarded, env={**os.environ, PROTECTED: "1"}).returncode


def main() -> int:
    """Try the mutants that a seed draws; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="+", help="folders or files below workflow/neurotier")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if PROTECTED not in os.environ:
        return run_protected([sys.executable, str(ROOT / "tests/mutants.py"), *sys.argv[1:]])
    files_of = {room: files_below(room) for room in asked.rooms}
    everything = {one: room for room, files in files_of.items() for file in files for one in mutants_of(file)}
    everything = {one: room for one, room in everything.items() if said(one) not in KNOWN}
    drawn = random.Random(asked.seed).sample(list(everything), min(asked.count, len(everything)))
    print(f"{len(drawn)} of {len(everything)} mutants, seed {asked.seed}", flush=True)
    for name in LOADED:
        importlib.import_module(name)
    survived = Counter[str]()
    with ExitStack() as stack:
        copies = [stack.enter_context(copy_of_checkout()) for _ in range(AT_ONCE)]
        for copy in copies:
            checkouts.put(copy)
            if (shared := ROOT.parent / "shared").exists():
                (copy.parent / "shared").symlink_to(shared)
        pool = stack.enter_context(multiprocessing.get_context("fork").Pool(AT_ONCE))
        asked_for = {files for room, files in files_of.items() if room in map(everything.get, drawn)}
        trials = Trials()
        for one in pool.imap_unordered(watched, sorted({trial for files in asked_for for trial in trials_for(files)})):
            trials.seconds |= one.seconds
            trials.calls |= one.calls
        chosen = [(mutant, trials.of(mutant)) for mutant in drawn]
        jobs = [(mutant, few, sum(trials.seconds[one] for one in few)) for mutant, few in chosen]
        found = pool.imap_unordered(tried, jobs)
        for number, (mutant, has) in enumerate(found, start=1):
            survived[everything[mutant]] += has
            verdict = "SURVIVED" if has else "noticed "
            print(f"{number:4} {verdict} {said(mutant)} (line {mutant.line})", flush=True)
    for room, count in Counter(everything[mutant] for mutant in drawn).items():
        print(f"{room}: {survived[room]} of {count} survived")
    return int(survived.total() > MAY_SURVIVE * len(drawn))


if __name__ == "__main__":
    sys.exit(main())
