"""Tables: tab-separated files whose columns are described by a schema, with a BIDS sidecar next to each.

Each table has a name; a YAML document in ``workflow/schemas/tables`` gives its columns in order, with type, unit and
meaning, and may name another table (``followed_by``) whose columns come after them. Numbers are written with six
decimals or, in columns of tiny numbers, with as many digits as the schema says (``significant``). Empty values are
written ``n/a``, booleans ``true``/``false``, as in BIDS.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from neurotier.core.configuration import SCHEMAS, read_yaml
from neurotier.core.errors import StateError
from neurotier.core.files import Facts, Record, atomic_writer, require_file, write_json

Row = Record
Rows = list[Row]
EMPTY = "n/a"

Key = TypeVar("Key")
Value = TypeVar("Value")


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """The values of each key, all in order.

    >>> grouped([("a", 1), ("b", 2), ("a", 3)])
    {'a': [1, 3], 'b': [2]}
    """
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def finite(value: str | float) -> float:
    """A finite number, given as text or not; otherwise :class:`ValueError`, since no figure could show it."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value} is not finite")
    return number


READERS: dict[str, Callable[[str], Any]] = {"boolean": lambda text: text == "true", "integer": int, "number": finite}
"""How to read a cell, by its column's type."""


@cache
def schema(table: str) -> Record:
    """The JSON schema of a table's rows: all of its columns and, except in a table with ``others``, no others."""
    families = (file.read_text().split("\n---\n") for file in (SCHEMAS / "tables").glob("*.yaml"))
    said = read_yaml(next(one for family in families for one in family if one.startswith(f"table: {table}\n")))
    own = {name: column_schema(*column) for name, column in said["columns"].items()}
    if "followed_by" in said:
        own |= columns(said["followed_by"])
    return {
        "title": said["title"],
        "type": "object",
        "additionalProperties": said.get("others", False),
        "required": [*own],
        "properties": own,
    }


def column_schema(kind: str | list[str], *words: Any) -> Record:
    """The JSON schema of a column.

    >>> column_schema("number?", "s", "How long.")
    {'type': ['number', 'null'], 'description': 'How long.', 'unit': 's'}
    >>> column_schema("number", "s", "How long.", {"significant": 4})
    {'type': 'number', 'description': 'How long.', 'unit': 's', 'significant': 4}
    """
    *texts, more = words if isinstance(words[-1], dict) else (*words, {})
    kinds = {"enum": kind} if isinstance(kind, list) else {"type": kind}
    if isinstance(kind, str) and kind.endswith("?"):
        kinds = {"type": [kind.removesuffix("?"), "null"]}
    return {**kinds, **dict(zip(("description", "unit"), reversed(texts), strict=False)), **more}


def columns(table: str) -> dict[str, Record]:
    """The columns of a table: name to type, description and unit, in order."""
    return dict(schema(table)["properties"])


@cache
def checker(table: str) -> Callable[[Facts], object]:
    """A function that raises ``fastjsonschema.JsonSchemaValueException`` for a row that does not satisfy its schema.

    A row of 53 columns takes it 0.007 ms, and jsonschema 0.17 ms; a run of many participants has many rows.
    """
    import fastjsonschema  # reading a table needs no validator

    check: Callable[[Facts], object] = fastjsonschema.compile(schema(table), use_default=False)
    return check


@contextmanager
def writing_rows(path: Path) -> Iterator[Callable[[Iterable[str]], Any]]:
    """Yield a function that writes a row of tab-separated cells; the file appears whole, or not at all."""
    with atomic_writer(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        yield csv.writer(text, delimiter="\t", lineterminator="\n").writerow
        text.detach()  # otherwise it would close the file, which is still to be flushed


@contextmanager
def writing_table(path: Path, table: str) -> Iterator[Callable[[Facts], None]]:
    """Yield a function that writes a row of a table; table and sidecar each appear whole, or not at all.

    Raises
    ------
    fastjsonschema.JsonSchemaValueException
        If a row does not satisfy the schema, which is a bug of neurotier.
    """
    digits = {name: column.get("significant") for name, column in columns(table).items()}
    with writing_rows(path) as write_cells:
        write_cells(digits)

        def write(row: Facts) -> None:
            checker(table)(dict(row))
            write_cells(to_text(row[name], significant) for name, significant in digits.items())

        yield write
    sidecar = {
        name: {"Description": column["description"], **({"Units": column["unit"]} if "unit" in column else {})}
        for name, column in columns(table).items()
    }
    write_json(path.with_suffix(".json"), sidecar)


def write_table(path: Path, table: str, rows: Iterable[Facts]) -> None:
    """Write rows in the schema's order, and the sidecar that describes the columns; see :func:`writing_table`."""
    with writing_table(path, table) as write:
        for row in rows:
            write(row)


def read_table(path: Path, table: str, only: Collection[str] | None = None) -> Rows:
    """Read a table back, with the types of its schema.

    Parameters
    ----------
    path, table
        The file, and the name of its schema.
    only
        Columns to read; by default all. Fewer columns take less memory.

    Raises
    ------
    StateError
        If a column is missing, a row is cut short, a cell is not of its column's type, or ``path`` is not a file.
    """
    require_file(path)
    described = {name: column for name, column in columns(table).items() if only is None or name in only}
    texts: dict[str, str] = {}
    with path.open(newline="") as file:
        try:
            reader = csv.reader(file, delimiter="\t")
            places = {name: place for place, name in enumerate(next(reader, []))}
            cells = [(name, places[name], cell_reader(column, texts)) for name, column in described.items()]
            return [{name: read(row[place]) for name, place, read in cells} for row in reader if row]
        except (LookupError, TypeError, ValueError, csv.Error):
            raise StateError(path) from None


def cell_reader(column: Facts, texts: dict[str, str]) -> Callable[[str], Any]:
    """A function that reads a cell by its column's type; equal texts become one object, kept in ``texts``."""
    kinds = column.get("type", "string")
    read = next((READERS[kind] for kind in READERS if kind in kinds), lambda text: texts.setdefault(text, text))
    return lambda text: None if text == EMPTY else read(text)


def write_plain(path: Path, rows: Iterable[Facts]) -> None:
    """Write the numbers behind a figure; its columns are those of the first row."""
    with writing_rows(path) as write:
        for place, row in enumerate(rows):
            if place == 0:
                write(row)
            write(to_text(value) for value in row.values())


def to_text(value: Any, significant: int | None = None) -> str:
    """The text of a cell; numbers have six decimals at most, or ``significant`` digits.

    >>> [to_text(value) for value in (None, True, 0.25, "a")], to_text(1.23456e-9, 4)
    (['n/a', 'true', '0.25', 'a'], '1.235e-09')
    """
    if value is None:
        return EMPTY
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(round(value, 6) if significant is None else float(f"{value:.{significant}g}"))
    return str(value)
