"""The documents that users read, and what stands in their blocks."""

from __future__ import annotations

import re
from pathlib import Path

from support import ROOT

README = ROOT / "README.md"
FOLDERS = ("", "config", "config/examples", "profiles", "containers", "workflow", "tests")
DOCUMENTS = [
    *(ROOT / folder / "README.md" for folder in FOLDERS),
    *(ROOT / page for page in ("config/keys.md", "workflow/measures.md")),
]


def commands(file: Path) -> list[str]:
    return [line for block in blocks(file, "console") for line in block.splitlines()]


def blocks(file: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", file.read_text(), re.MULTILINE | re.DOTALL)


DEMONSTRATION = "snakemake --workflow-profile profiles/local --cores 2"
LINES = list(dict.fromkeys(line for file in DOCUMENTS for line in commands(file)))
