"""Change one constant or operator of the library at random, many times, and see whether its unit tests notice.

Each mutant is tried in a copy of this checkout by the tests that import its module, or, if none does, by those that
import its room. The table lists those that survive; exit 1 if more than one in twenty does. Some hours for 200::

    python tests/mutants.py --count 200 --seed 1 model advice
"""

from __future__ import annotations

import argparse
import ast
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from planted_bugs import ROOT, copy_of_checkout, exit_code

LIBRARY = Path("workflow/neurotier")
MAY_SURVIVE = 0.05
ENDS_WITHIN_S = 600.0
"""A mutant whose tests take longer, s, never ends, and is noticed."""

PAIRS = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)),
    *((ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Div)),
)
OTHER: dict[type, type] = {**dict(PAIRS), **{new: old for old, new in PAIRS}}
"""What takes an operator's place."""


class Mutant(NamedTuple):
    """A file of the library, and what a piece of it becomes, by its offsets."""

    file: Path
    line: int
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


def expressions(node: ast.AST) -> Iterator[ast.expr]:
    """All expressions but annotations and those in f-strings, of which Python 3.11 gives wrong places."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if (
                isinstance(child, ast.AST)
                and name not in ("annotation", "returns")
                and type(child) is not ast.JoinedStr
            ):
                if isinstance(child, ast.expr):
                    yield child
                yield from expressions(child)


def mutants_of(file: Path) -> Iterator[Mutant]:
    """Every mutant of a file of the checkout."""
    text = (ROOT / file).read_bytes()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in expressions(ast.parse(text)):
        if (other := changed(node)) is not None:
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            yield Mutant(file, node.lineno, begin, end, text[begin:end].decode(), f"({ast.unparse(other)})")


def trials_of(file: Path) -> tuple[str, ...]:
    """The unit tests that import a module, or else its room."""
    room, module = file.parent.name, file.stem
    tests = {
        path.relative_to(ROOT / "tests").as_posix(): path.read_text() for path in (ROOT / "tests/unit").glob("*.py")
    }
    for words in ((f"{room}.{module} import", f"{room} import {module}"), (f"neurotier.{room}",)):
        if found := tuple(sorted(name for name, text in tests.items() if any(word in text for word in words))):
            return found
    return ()


def main() -> int:
    """Try the mutants that a seed draws; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rooms", nargs="+", help="folders or files below workflow/neurotier")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    places = [ROOT / LIBRARY / room for room in asked.rooms]
    files = [file for place in places for file in ([place] if place.is_file() else sorted(place.rglob("*.py")))]
    everything = [mutant for file in files for mutant in mutants_of(file.relative_to(ROOT))]
    drawn = random.Random(asked.seed).sample(everything, min(asked.count, len(everything)))
    survived = 0
    print(f"{len(drawn)} of {len(everything)} mutants, seed {asked.seed}", flush=True)
    with copy_of_checkout() as checkout:
        for number, mutant in enumerate(drawn, start=1):
            file, trials = checkout / mutant.file, trials_of(mutant.file)
            text = file.read_bytes()
            file.write_bytes(text[: mutant.begin] + mutant.new.encode() + text[mutant.end :])
            is_noticed = bool(trials) and exit_code(trials, checkout, ENDS_WITHIN_S) != 0
            file.write_bytes(text)
            survived += not is_noticed
            where = f"{mutant.file.relative_to(LIBRARY)}:{mutant.line}"
            verdict = "noticed " if is_noticed else "SURVIVED"
            print(f"{number:4} {verdict} {where}: {' '.join(mutant.old.split())} -> {mutant.new}", flush=True)
    print(f"{survived} of {len(drawn)} survived")
    return int(survived > MAY_SURVIVE * len(drawn))


if __name__ == "__main__":
    sys.exit(main())
