"""Clones of the demonstration's dataset, for tests of sources."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from configured import settings_at
from neurotier.core.private import private_folder
from neurotier.dataset.contents import get_images
from neurotier.dataset.source import Dataset, obtain
from support import git, quiet

IMAGE = "SiteA/sub-0099001/ses-1/anat/sub-0099001_ses-1_run-1_T1w.nii.gz"
SETTINGS = settings_at(dataset={"sites": ["SiteA"], "get_backoff_s": 0.2}).dataset
ONCE = dataclasses.replace(SETTINGS, get_attempts=1)


WEBDAV = (
    "11111111-1111-1111-1111-111111111111 autoenable=true encryption=none name=x type=webdav url=http://localhost:1/x "
    "timestamp=1795742480s"
)
"""A special remote to which git-annex would send a password."""


def note_remote(repository: Path, line: str) -> None:
    """Have the branch of git-annex in a repository describe a special remote."""
    branch = repository / ".git/branch"
    git(repository, "worktree", "add", str(branch), "git-annex")
    (branch / "remote.log").write_text(f"{line}\n")
    git(branch, "add", "remote.log")
    git(branch, "commit", "-m", "hostile")


def fetched(dataset: Dataset, say: Callable[[str], None] = quiet) -> int:
    """How many contents one attempt to fetch :data:`IMAGE` into a clone brings."""
    return get_images(dataset.path, [IMAGE], ONCE, say)


def cloned(source: Path | str, folder: Path, say: Callable[[str], None] = quiet, **changes: Any) -> Dataset:
    """A clone of a source, by settings that differ so from the usual ones."""
    return obtain(dataclasses.replace(SETTINGS, **changes), str(source), private_folder(folder) / "clones", say)
