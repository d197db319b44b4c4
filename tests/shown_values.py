"""Figures of an object or of a row in a line, so that what is expected is read as a row of a table."""

from __future__ import annotations

from collections.abc import Mapping


def shown(found: object, names: str) -> str:
    """Figures by their names: ``-`` is what is not known, what is in ns is shown in s; numbers have seven digits."""

    def text(name: str) -> str:
        value = found[name] if isinstance(found, Mapping) else getattr(found, name)
        if name.endswith("_ns"):
            value /= 1e9
        if isinstance(value, float):
            return format(round(value, 9) + 0, ".7g")
        return "-" if value is None else str(value)

    return " ".join(map(text, names.split()))
