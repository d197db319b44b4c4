"""Answers for the rules of the replay while Snakemake builds its graph of jobs."""

from __future__ import annotations

from pathlib import Path

from neurotier.core.errors import SettingsError
from neurotier.core.places import short_hash

LOGS = ("*.out", "tasks.json", "makespan_seconds")
"""Names of the files that are read for runs and storage benchmarks."""


def asked_logs(published: str | None) -> list[str]:
    """Where the logs of the published experiment are, and which: if they change, they are read again.

    Parameters
    ----------
    published
        The path that the configuration names.

    Raises
    ------
    SettingsError
        If it names none.
    """
    if published is None:
        fix = "add --config published=PATH, a checkout of big-data-lab-team/paper-memory-storage or any part of it"
        raise SettingsError("there is nothing to replay", "target published", fix)
    return [published, fingerprint(Path(published))]


def fingerprint(root: Path) -> str:
    """A hash of logs' paths, sizes and times, which shows whether any were added, removed or changed."""
    files = [root] if root.is_file() else [file for pattern in LOGS for file in root.rglob(pattern)]
    return short_hash(str(sorted((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files)))
