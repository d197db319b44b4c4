"""Validation of the dataset by the BIDS validator: once per site, and only if requested."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from neurotier.core.errors import ToolError
from neurotier.core.files import Record
from neurotier.core.quantities import counted

PROGRAM = Path(sys.executable).with_name("bids-validator-deno")
SHOWN = 5


def validate(folder: Path, where: str) -> Record:
    """Run the validator on one site. Image headers are not checked, so the images need not be present.

    Parameters
    ----------
    folder
        The site's folder.
    where
        What to call it in an error.

    Returns
    -------
    dict
        ``validator`` (the version of its BIDS schema), ``errors`` and ``warnings``: issue code to the number of files
        concerned.

    Raises
    ------
    ToolError
        If the validator cannot be run.
    """
    if not PROGRAM.exists():
        raise ToolError(
            "the BIDS validator is not installed",
            where,
            "pip install bids-validator-deno, or set dataset.validation to none",
        )
    done = subprocess.run(
        ["env", "NO_COLOR=1", PROGRAM, "--json", "--ignoreNiftiHeaders", folder],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        first, *_ = done.stderr.splitlines() or ["it printed nothing"]
        raise ToolError(f"the BIDS validator failed: {first}", where) from None
    found = {
        f"{severity}s": Counter(one["code"] for one in answer["issues"]["issues"] if one["severity"] == severity)
        for severity in ("error", "warning")
    }
    return {"validator": answer["summary"].get("schemaVersion", "unknown"), **found}


def issues_line(findings: Record, where: str) -> str:
    """The findings in one line, for people."""
    errors, warnings = sum(findings["errors"].values()), sum(findings["warnings"].values())
    said = f"{counted(errors, 'error')} and {counted(warnings, 'warning')}"
    return f"{where}: {said} of the BIDS validator{most_frequent(findings['errors'])}"


def refusal_line(findings: Record, where: str) -> str:
    """Why a dataset that must be valid is not analysed; empty if it is valid."""
    refused = f"{where}: is not valid BIDS{most_frequent(findings['errors'])}"
    return f"{refused}; correct it, or set dataset.validation to report" if findings["errors"] else ""


def most_frequent(issues: dict[str, int]) -> str:
    """The most frequent issues by name.

    >>> most_frequent({"EMPTY_FILE": 2, "NOT_INCLUDED": 3})
    ': NOT_INCLUDED (3), EMPTY_FILE (2)'
    """
    shown = ", ".join(f"{code} ({number})" for code, number in Counter(issues).most_common(SHOWN))
    return f": {shown}" if shown else ""
