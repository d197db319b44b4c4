"""What two finished runs made of the same data, whichever version wrote them: whether tables and derivatives are equal,
and what their pages say.

A rebuild shall change none of it. With each version, run the same command in a folder of its own. What depends on time
is equal only where the second version is given the records of the first, and made to tabulate them again
(``--forcerun tabulate_profile``). Then::

    python tests/same_outputs.py BEFORE/results AFTER/results --renamed run=bids_run

Exits with 1 if a table or a derivative differs or is missing.
"""

from __future__ import annotations

import argparse
import difflib
import html
import re
import sys
from pathlib import Path

import pandas as pd

NOT_COMPARED = {"state", "logs", "runs", "records"}
"""Folders with clocks, process numbers and host names in them."""

COMPARED = (".tsv", ".gz")

LAST_DIGIT = 1.5e-6
"""Sums in another order differ in the last of the six digits after the point."""


def files_of(results: Path) -> dict[str, Path]:
    """Tables and derivatives of a results folder, by their path in it."""
    found = {path.relative_to(results).as_posix(): path for path in sorted(results.rglob("*")) if path.is_file()}
    return {
        name: path
        for name, path in found.items()
        if path.suffix in COMPARED and not NOT_COMPARED & set(path.relative_to(results).parts)
    }


def are_equal(before: Path, after: Path, renamed: dict[str, str]) -> bool:
    """Whether two files are; of tables, but for the names of some columns."""
    is_same = before.read_bytes() == after.read_bytes()
    if is_same or before.suffix != ".tsv":
        return is_same
    try:
        one, other = (pd.read_csv(file, sep="\t") for file in (before, after))
        names = {old: new for old, new in renamed.items() if new in other}
        pd.testing.assert_frame_equal(one.rename(columns=names), other, check_dtype=False, rtol=0, atol=LAST_DIGIT)
    except (AssertionError, pd.errors.EmptyDataError):
        return False
    return True


def sentences(page: Path) -> list[str]:
    """The text of a page, a line each, without its figures and style."""
    text = re.sub(r"<(style|script|svg)\b.*?</\1>", "", page.read_text(), flags=re.DOTALL)
    text = re.sub(r'<(?:img|figure)[^>]*(?:alt|aria-label)="([^"]*)"[^>]*>', r"\n\1\n", text)
    text = re.sub(r"</(?:tr|p|li|h\d|div|a|dt|dd|summary|section)>", "\n", text)
    lines = (" ".join(html.unescape(re.sub(r"<[^>]+>", " ", line)).split()) for line in text.splitlines())
    return [line for line in lines if line]


def main() -> int:
    """Compare two results folders; the exit code of the process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--renamed", nargs="*", default=[], metavar="OLD=NEW", help="columns with another name")
    options = parser.parse_args()
    renamed = dict(pair.split("=", 1) for pair in options.renamed)
    before, after = files_of(options.before), files_of(options.after)
    lost = [name for name in before if name not in after]
    differing = [name for name, path in before.items() if name in after and not are_equal(path, after[name], renamed)]
    print(f"{len(before)} tables and derivatives: {len(before) - len(lost) - len(differing)} equal")
    for kind, names in (("missing", lost), ("different", differing)):
        for name in names:
            print(f"  {kind}: {name}")
    for page in sorted(options.before.glob("*.html")):
        had, has = sentences(page), sentences(options.after / page.name)
        kept = len(set(had) & set(has))
        print(f"{page.name}: {kept} of {len(set(had))} lines kept")
        for line in difflib.unified_diff(sorted(set(had)), sorted(set(has)), lineterm="", n=0):
            if line[:2] not in ("--", "++", "@@"):
                print(f"  {line}")
    return 1 if lost or differing else 0


if __name__ == "__main__":
    sys.exit(main())
