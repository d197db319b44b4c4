"""Tables: tab-separated files whose columns are described by a schema, with a BIDS sidecar beside each.

A table has a name; ``workflow/schemas/<name>.schema.yaml`` gives its columns in order with type, meaning and
unit, and may name another schema (``followed_by``) whose columns come after them. Numbers are written with six
decimals, or in columns of tiny ones with the ``significant`` digits that the schema names. Empty values are written
``n/a``, booleans ``true``/``false``, as in BIDS.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neurotier.core.configuration import SCHEMAS
from neurotier.core.errors import StateError
from neurotier.core.files import write_text

if TYPE_CHECKING:  # reading a table needs no validator
    from jsonschema import Draft202012Validator

Row = dict[str, Any]
EMPTY = "n/a"


@cache
def schema(table: str) -> dict[str, Any]:
    """The schema of a table's rows; ``followed_by`` names one whose columns come after its own."""
    import yaml

    whole: dict[str, Any] = yaml.safe_load((SCHEMAS / f"{table}.schema.yaml").read_text())
    following = whole.pop("followed_by", None)
    if following:
        rest = schema(following)
        whole["properties"] = whole["properties"] | rest["properties"]
        whole["required"] = [*whole["required"], *rest["required"]]
    return whole


def columns(table: str) -> dict[str, dict[str, Any]]:
    """The columns of a table: name to type, description and unit, in order."""
    described: dict[str, dict[str, Any]] = schema(table)["properties"]
    return described


@cache
def validator(table: str) -> Draft202012Validator:
    """The validator of a table's rows."""
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema(table))


def write_table(path: Path, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows in the schema's order, and the sidecar that describes the columns; both appear whole.

    Raises
    ------
    jsonschema.ValidationError
        If a row does not satisfy the schema: a fault of ours, not of the user.
    """
    described = columns(table)
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t", lineterminator="\n")
    writer.writerow(described)
    for row in rows:
        validator(table).validate(dict(row))
        writer.writerow([to_text(row[name], column.get("significant")) for name, column in described.items()])
    write_text(path, text.getvalue())
    write_text(path.with_suffix(".json"), json.dumps(sidecar(table), indent=2) + "\n")


def read_table(path: Path, table: str) -> list[Row]:
    """Read a table back, with the types of its schema. A column that older tables lack has a default there.

    Raises
    ------
    StateError
        If a row or a column is cut short, or a cell is not of its column's type.
    """
    described = columns(table)
    with path.open(newline="") as file:
        try:
            reader = csv.DictReader(file, delimiter="\t")
            absent = {name for name, column in described.items() if "default" in column} - set(reader.fieldnames or ())
            return [
                {
                    name: described[name]["default"] if name in absent else from_text(row[name], described[name])
                    for name in described
                }
                for row in reader
            ]
        except (KeyError, TypeError, ValueError, csv.Error):
            raise StateError(path) from None


def write_plain(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the numbers behind a figure; its columns are those of the first row."""
    text = io.StringIO()
    if rows:
        writer = csv.writer(text, delimiter="\t", lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows([to_text(value) for value in row.values()] for row in rows)
    write_text(path, text.getvalue())


def sidecar(table: str) -> dict[str, dict[str, str]]:
    """The BIDS sidecar of a table."""
    return {
        name: {"Description": column["description"], **({"Units": column["unit"]} if "unit" in column else {})}
        for name, column in columns(table).items()
    }


def to_text(value: Any, significant: int | None = None) -> str:
    """One cell; numbers have six decimals at most, or the significant digits that are asked for.

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


def from_text(text: str, column: Mapping[str, Any]) -> Any:
    """The value of a cell by its column's type."""
    if text == EMPTY:
        return None
    kinds = column.get("type", "string")
    if "boolean" in kinds:
        return text == "true"
    if "integer" in kinds:
        return int(text)
    return float(text) if "number" in kinds else text
