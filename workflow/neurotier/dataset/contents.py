"""Contents: get and drop the images of a DataLad dataset, and say what their annex keys tell without having them.

Getting different files side by side is safe; ``datalad run`` and ``datalad save`` are never used, since in parallel
jobs they race on the same repository (datalad#4606).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from neurotier.dataset.attempts import GoneError, first_message, retry
from neurotier.dataset.datalad_environment import prepare_environment
from neurotier.errors import SourceError
from neurotier.settings import DatasetSettings

KEY_SIZE = re.compile(r"-s(\d+)-")
"""Size of the content in a git-annex key, such as ``MD5E-s1234--d41d8.nii.gz``."""

POINTER, POINTER_BYTES = b"/annex/objects/", 32 * 1024
"""How an unlocked file without its content begins, and how long it may be at most."""


def annex_key(file: Path) -> str | None:
    """The git-annex key of a file that is a link or an unlocked pointer; ``None`` for anything else."""
    if file.is_symlink():
        name = os.path.basename(os.readlink(file))
        return name if KEY_SIZE.search(name) else None
    if file.is_file() and file.stat().st_size <= POINTER_BYTES:
        with file.open("rb") as opened:
            if opened.read(len(POINTER)) == POINTER:
                return opened.readline().decode(errors="replace").strip()
    return None


def is_present(file: Path) -> bool:
    """Whether a file has its content: not a link into nowhere, and not a pointer."""
    return file.exists() and (file.is_symlink() or annex_key(file) is None)


def content_size_bytes(file: Path) -> int | None:
    """Size of a file's content, from its annex key if it is not here; ``None`` if nothing tells."""
    key = annex_key(file)
    size = KEY_SIZE.search(key) if key else None
    if size:
        return int(size[1])
    return file.stat().st_size if file.exists() else None


def content_version(file: Path) -> str:
    """What tells one content of a file from another: its annex key, or size and time of change."""
    key = annex_key(file)
    if key or not file.exists():
        return key or ""
    facts = file.stat()
    return f"{facts.st_size}-{facts.st_mtime_ns}"


def get_images(dataset: Path, paths: Sequence[str], settings: DatasetSettings, report: Callable[[str], None]) -> int:
    """Have the content of files on the dataset tier; how many had to be fetched.

    Raises
    ------
    SourceError
        If a content exists nowhere (at once), or could not be fetched in ``get_attempts`` attempts.
    """
    missing = [path for path in paths if not is_present(dataset / path)]
    if not missing:
        return 0
    prepare_environment()
    from datalad.api import get
    from datalad.support.exceptions import IncompleteResultsError

    def fetch() -> None:
        try:
            get(path=[str(dataset / path) for path in missing], dataset=str(dataset), result_renderer="disabled")
        except IncompleteResultsError as error:
            for path in missing:
                if not is_present(dataset / path):
                    check_known_somewhere(dataset, path)
            bare = not Path("/etc/protocols").exists()  # git-annex looks up "tcp" there, and else ignores the source
            fix = "install the package netbase, without which git-annex cannot speak HTTP, and remove the clone"
            message = f"could not be fetched: {first_message(error)}"
            raise SourceError(message, where=missing[0], fix=fix if bare else "") from None

    retry(fetch, settings, report)
    return len(missing)


def check_known_somewhere(dataset: Path, path: str) -> None:
    """Raise :class:`GoneError` if git-annex knows of no copy of a file: then no retry can help."""
    from datalad.runner import CommandError
    from datalad.support.annexrepo import AnnexRepo

    file = dataset / path
    if annex_key(file) is None:
        raise GoneError("is not in the dataset", where=path)
    root = next(parent for parent in file.parents if (parent / ".git").exists())
    try:
        copies = AnnexRepo(str(root)).whereis(str(file.relative_to(root)))
    except CommandError:
        copies = []
    if not any(copies):
        raise GoneError(
            "its content is nowhere: git-annex knows no copy",
            where=path,
            fix="ask the dataset's keepers, or leave the participant out",
        )


def drop_images(dataset: Path, paths: Sequence[str]) -> str:
    """Drop contents from the dataset tier; why git-annex kept some, or an empty text.

    git-annex keeps what it cannot find elsewhere; nothing is lost then but space.
    """
    present = [path for path in paths if is_present(dataset / path)]
    if not present:
        return ""
    prepare_environment()
    from datalad.api import drop
    from datalad.support.exceptions import IncompleteResultsError

    try:
        drop(path=[str(dataset / path) for path in present], dataset=str(dataset), result_renderer="disabled")
    except IncompleteResultsError as error:
        return first_message(error)
    kept = [path for path in present if is_present(dataset / path)]  # what counts is what is there, not what was said
    return f"git-annex kept {len(kept)} of {len(present)} and gave no reason" if kept else ""
