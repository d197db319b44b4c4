"""Write ``config/keys.md``: every key of the configuration with its default and meaning, from the schema.

``make keys`` runs it after a change of the schema; ``tests/unit/test_settings.py`` compares.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from neurotier.core.configuration import config_schema

PAGE = Path(__file__).parents[1] / "config/keys.md"

INTRODUCTION = """# Every configuration key

Made from `workflow/schemas/config.schema.yaml` by `make keys`. [Configuration](README.md) explains how settings are
laid over one another, and the [examples](examples/README.md) show the keys of each use case together. Units stand in
the name of a key (`_s`, `_mb`) or in its meaning.
"""


def documented_keys(schema: dict[str, Any], prefix: str = "") -> dict[str, dict[str, Any]]:
    """Dotted path to schema of every key that is not a section."""
    found: dict[str, dict[str, Any]] = {}
    for name, sub in schema["properties"].items():
        path, others = f"{prefix}{name}", sub.get("additionalProperties") or {}
        if others == {"$ref": "#/$defs/program"}:
            others = config_schema()["$defs"]["program"]
        if "properties" in sub:
            found |= documented_keys(sub, f"{path}.")
        if "properties" in others:
            found |= documented_keys(others, f"{path}.NAME.")
        elif "properties" not in sub:
            found[path] = sub
    return found


def page() -> str:
    """The page: a table for each section, and one for the keys that are in none."""
    sections: dict[str, list[str]] = {}
    for key, sub in documented_keys(config_schema()).items():
        default = f"`{json.dumps(sub['default'])}`" if "default" in sub else "required"
        section = key.partition(".")[0] if "." in key else "Other keys"
        sections.setdefault(section, []).append(f"| `{key}` | {default} | {sub['description'].strip()} |")
    tables = [
        "\n".join([f"## {section}", "", "| key | default | meaning |", "| --- | --- | --- |", *rows, ""])
        for section, rows in sections.items()
    ]
    return "\n".join([INTRODUCTION, *tables])


if __name__ == "__main__":
    PAGE.write_text(page())
