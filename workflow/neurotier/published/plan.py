"""Which logs there are, for the rules of the replay, while Snakemake builds its graph of jobs."""

from __future__ import annotations

from pathlib import Path

from neurotier.core.errors import SettingsError
from neurotier.core.places import short_hash

LOGS = ("*.out", "tasks.json", "makespan_seconds")
"""Names of the files that have runs and storage benchmarks."""


def asked_logs(published: str | None) -> list[str]:
    """The path of the published logs, and a hash of the files' paths, sizes and times: if either changes, the logs are
    read again.

    Parameters
    ----------
    published
        The path in the configuration.

    Raises
    ------
    SettingsError
        If the configuration has no path.
    """
    if published is None:
        fix = "add --config published=PATH, a checkout of big-data-lab-team/paper-memory-storage or any part of it"
        raise SettingsError("there is nothing to replay", "target published", fix)
    root = Path(published)
    files = [root] if root.is_file() else [file for pattern in LOGS for file in root.rglob(pattern)]
    found = sorted((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files)
    return [published, short_hash(str(found))]
