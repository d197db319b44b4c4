"""Change one constant or operator of the library at random, many times, and see whether its unit tests notice.

Each mutant is tried in a copy of this checkout by the examples and unit tests that call its function, or, of what is in
none, by those that import its module, until one fails. Prints each, and how many of each room survive; exit 1 if more
than one in twenty of all does. Some seconds each::

    python tests/mutants.py --count 100 --seed 1 model advice
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import multiprocessing
import os
import random
import select
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import NamedTuple

import pytest
from planted_bugs import FAILED, ROOT, copy_of_checkout

LIBRARY = Path("workflow/neurotier")
MAY_SURVIVE = 0.05
AT_ONCE = 2

PATIENCE, PATIENCE_S = 4.0, 5.0
"""A mutant never ends, and is noticed, if its trials take so many times as long as without it, and so many s."""

LONGEST_S = 30.0
"""A test that takes longer is tried on no mutant, s."""

LOADED = ("nibabel", "numpy", "pandas", "psutil", "scipy.optimize", "yaml")
"""What most unit tests load, and takes long: every trial is a fork of a process that has it."""

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
    function: int
    begin: int
    end: int
    old: str
    new: str


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
            yield Mutant(file, node.lineno, function, begin, end, text[begin:end].decode(), f"({ast.unparse(other)})")


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
        """Take down what a test calls; not what processes call that it begins."""
        called: dict[int, CodeType] = {}
        begin_s = time.monotonic()
        sys.settrace(lambda frame, *_: called.setdefault(id(frame.f_code), frame.f_code) and None)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            self.seconds[item.nodeid] = time.monotonic() - begin_s
            ours = [code for code in called.values() if LIBRARY.as_posix() in code.co_filename]
            self.calls[item.nodeid] = [
                f"{LIBRARY}{code.co_filename.rpartition(str(LIBRARY))[2]}:{code.co_firstlineno}" for code in ours
            ]

    def of(self, mutant: Mutant) -> list[str]:
        """Those that call the function it is in, or else those that import its module, or all; the quickest first."""
        room, module, where = mutant.file.parent.name, mutant.file.stem, f"{mutant.file}:{mutant.function}"
        direct = {*tests_that_say(f"{room}.{module} import", f"{room} import {module}"), str(mutant.file)}
        chosen = [one for one, called in self.calls.items() if where in called]
        chosen = chosen or [one for one in self.calls if one.split("::")[0] in direct] or list(self.calls)
        return sorted(chosen, key=self.seconds.__getitem__)


def trials_of(files: Sequence[Path], checkout: Path) -> Trials:
    """The trials of a room's files, or of one, that pass."""
    examples = [file.as_posix() for file in files if ">>>" in (ROOT / file).read_text()]
    names = {".".join(("neurotier", *file.relative_to(LIBRARY).with_suffix("").parts)) for file in files}
    words = [f"from {name} import" for name in names] if len(files) == 1 else []
    words = words or [f"from {name.rpartition('.')[0]}" for name in names]
    kept = checkout.parent / "trials.json"
    chosen = [*examples, *tests_that_say(*words)]
    code = outcome(chosen, checkout, 3600.0, kept)
    trials = Trials(**json.loads(kept.read_text()))
    for one in [one for one in trials.calls if one in trials.failed or trials.seconds[one] > LONGEST_S]:
        print(
            f"left out: {one}, which {'fails without a mutant' if one in trials.failed else 'takes long'}", flush=True
        )
        del trials.calls[one]
    if code not in (0, FAILED) or not trials.calls or outcome(["--collect-only", *trials.calls], checkout, 3600.0):
        raise SystemExit(f"mutants: without one, these do not pass: {' '.join(trials.calls) or ' '.join(chosen)}")
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
        os.environ["PYTHONPATH"] = sys.path[0] = str(checkout / "workflow")
        sys.dont_write_bytecode = True
        options = [
            "-q",
            *([] if kept else ["-x"]),
            "-m",
            "not alone",
            "-p",
            "no:cacheprovider",
            f"--basetemp={checkout}-tmp",
        ]
        code = pytest.main([*options, *trials], plugins=[watcher := Trials()] if kept else [])
        if kept:
            kept.write_text(json.dumps(vars(watcher)))
        os._exit(code)
    handle = os.pidfd_open(child)
    has_ended, _, _ = select.select([handle], [], [], within_s)
    os.close(handle)
    with suppress(ProcessLookupError):  # and what it has left running
        os.killpg(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if has_ended else None


def tried(job: tuple[Mutant, Trials]) -> tuple[Mutant, bool]:
    """A mutant, and whether it survives: all its trials pass."""
    mutant, trials = job
    chosen, checkout = trials.of(mutant), checkouts.get()
    within_s = PATIENCE_S + PATIENCE * sum(trials.seconds[one] for one in chosen)
    file = checkout / mutant.file
    text = file.read_bytes()
    file.write_bytes(text[: mutant.begin] + mutant.new.encode() + text[mutant.end :])
    code = outcome(chosen, checkout, within_s)
    file.write_bytes(text)
    checkouts.put(checkout)
    return mutant, code == 0


def files_below(room: str) -> list[Path]:
    """The Python files of a room, or one file."""
    place = LIBRARY / room
    return sorted(one.relative_to(ROOT) for one in (ROOT / place).rglob("*.py")) if place.suffix == "" else [place]


def main() -> int:
    """Try the mutants that a seed draws; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="+", help="folders or files below workflow/neurotier")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    files_of = {room: files_below(room) for room in asked.rooms}
    everything = {one: room for room, files in files_of.items() for file in files for one in mutants_of(file)}
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
        trials = {
            room: trials_of(files, copies[0]) for room, files in files_of.items() if room in map(everything.get, drawn)
        }
        pool = stack.enter_context(multiprocessing.get_context("fork").Pool(AT_ONCE))
        found = pool.imap_unordered(tried, [(mutant, trials[everything[mutant]]) for mutant in drawn])
        for number, (mutant, has) in enumerate(found, start=1):
            survived[everything[mutant]] += has
            where = f"{mutant.file.relative_to(LIBRARY)}:{mutant.line}"
            verdict = "SURVIVED" if has else "noticed "
            print(f"{number:4} {verdict} {where}: {' '.join(mutant.old.split())} -> {mutant.new}", flush=True)
    for room, count in Counter(everything[mutant] for mutant in drawn).items():
        print(f"{room}: {survived[room]} of {count} survived")
    return int(survived.total() > MAY_SURVIVE * len(drawn))


if __name__ == "__main__":
    sys.exit(main())
