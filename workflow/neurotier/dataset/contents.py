"""Contents: get and drop the images of a DataLad dataset, and read what their annex keys say about absent ones.

Getting different files in parallel is safe; ``datalad run`` and ``datalad save`` are never used, since parallel jobs
would race on the same repository (datalad#4606).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from neurotier.core.errors import InputError, SourceError
from neurotier.core.files import flush_folder
from neurotier.core.foreign import blaming, file_in_dataset, kind_of, open_file, open_in_dataset
from neurotier.core.settings import DatasetSettings, Say
from neurotier.dataset.commands import UNEXPLAINED, ask_annex, ask_git, in_repository, retry

KEY_SIZE = re.compile(r"-s(\d{1,18})(?=-|$)")
"""Size of the content in a git-annex key, such as ``MD5E-s1234--d41d8.nii.gz``, before ``--``; a name follows."""

OBJECTS = "/annex/objects/"
"""Text before the key, in links and in pointer files."""

ANYWHERE = ("/",)
"""Where links may lead in a folder that the user made."""

FETCHING = ("-c", "annex.retry=3", "-c", "annex.stalldetection=1B/30s")
"""Retry as often as DataLad does, and start a transfer again that has begun and then gets nothing for 30 s to 2 min."""

POINTER_BYTES = 32 * 1024
"""Largest size of a pointer file, which stands for an unlocked file without its content."""


class Content(NamedTuple):
    """What is known about the content of a dataset's file without reading it.

    Attributes
    ----------
    key
        Its git-annex key, from a link or a pointer; empty for a file that is not annexed.
    size_bytes
        Size of the content, from the key if there is one; ``None`` if unknown.
    here_bytes
        Size of the file on the dataset tier; ``None`` if the content is absent.
    version
        Changes with the content: its key, or size and modification time.
    """

    key: str = ""
    size_bytes: int | None = None
    here_bytes: int | None = None
    version: str = ""

    @property
    def is_here(self) -> bool:
        """Whether the content is present and complete: a power cut leaves empty files behind."""
        return self.here_bytes is not None and self.here_bytes == self.size_bytes

    @property
    def is_damaged(self) -> bool:
        """Whether the content that is present has another size than the key says."""
        return bool(self.key) and self.here_bytes is not None and not self.is_here


def content_of(dataset: Path, path: str, links_to: Sequence[str] = ()) -> Content:
    """What is known about the content of a dataset's file.

    Raises
    ------
    InputError
        If it is a link that leads out of the dataset, a FIFO, or anything else but a file.
    """
    trusted, below = file_in_dataset(dataset, path, links_to)
    link, facts = "", None
    with suppress(OSError):
        link = os.readlink(dataset / path)
    with suppress(FileNotFoundError, NotADirectoryError):
        facts = os.lstat(trusted / below)
    if facts and not stat.S_ISREG(facts.st_mode):
        raise InputError(f"is {kind_of(facts.st_mode)}, and only files are read", path)
    key = os.path.basename(link) if OBJECTS in link else ""
    if facts and not key and facts.st_size <= POINTER_BYTES:
        with suppress(OSError), blaming(path), open_file(trusted, below) as file:
            first = file.readline(POINTER_BYTES).decode(errors="replace").strip()
            if first.startswith(OBJECTS) and first.isprintable():
                key, facts = os.path.basename(first), None
    size = size_in(key)
    if facts is None:
        return Content(key, size, None, key)
    version = key or f"{facts.st_size}-{facts.st_mtime_ns}"
    return Content(key, facts.st_size if size is None else size, facts.st_size, version)


def content_if_readable(dataset: Path, path: str, links_to: Sequence[str]) -> Content:
    """As :func:`content_of`, but empty if the file must not be read: the job that needs it will report why."""
    try:
        return content_of(dataset, path, links_to)
    except InputError:
        return Content()


def size_in(key: str) -> int | None:
    """The size in a key; ``None`` if it has none.

    >>> size_in("MD5E-s1234--d41d8.nii.gz"), size_in("URL--http&c%%x.org")
    (1234, None)
    >>> size_in("URL--https&c%%x.org%ds-s01-T1w.nii.gz"), size_in("URL-s7-m9--https&c%%x.org%ds-s01-T1w")
    (None, 7)
    """
    match = KEY_SIZE.search(key.partition("--")[0])
    return int(match[1]) if match else None


def is_present(dataset: Path, path: str, links_to: Sequence[str] = ()) -> bool:
    """Whether a file's content is present and complete; not so for a dangling link, or one that leads out."""
    return content_if_readable(dataset, path, links_to).is_here


def get_images(dataset: Path, paths: Sequence[str], settings: DatasetSettings, say: Say) -> int:
    """Get the contents of files to the dataset tier, flushed to its device; returns how many had to be fetched.

    Raises
    ------
    SourceError
        If git-annex knows of no copy of anything that is missing (raised at once), or could not fetch all of it in
        ``get_attempts`` attempts.
    InputError
        If a file is a link that leads out of the dataset, a FIFO, or anything else but a file.
    """
    links_to = settings.links_to
    contents = {path: content_of(dataset, path, links_to) for path in paths}
    missing = [path for path, content in contents.items() if not content.is_here]
    if not missing:
        return 0
    for path in missing:
        if contents[path].is_damaged:
            say(f"{path}: {contents[path].here_bytes} of {contents[path].size_bytes} bytes are here: fetched again")
            _, said = ask_annex(dataset, "drop", [path], "--force")  # also clears the record that it is here
            if content_of(dataset, path, links_to).is_damaged:
                raise SourceError(f"its content is damaged and cannot be discarded: {said}", path)

    # Files whose content is missing. Files that are missing themselves are first put back, as links or pointers:
    # git-annex removes an unlocked file before it writes it again, and may be doing so for another job, or have been
    # killed meanwhile. In a repository in a plain folder, it was the user who removed them.
    def lacking(paths: Sequence[str]) -> list[str]:
        for path in paths:
            if not os.path.lexists(dataset / path):
                root, name = in_repository(dataset, path)
                if (dataset / ".git").exists():
                    ask_git(root, "checkout-index", "--", name)
                if not os.path.lexists(dataset / path):
                    raise SourceError("is not in the dataset", path)
        return [path for path in paths if not is_present(dataset, path, links_to)]

    def fetch() -> None:
        wanted = lacking(missing)
        records, said = ask_annex(dataset, "get", wanted, *FETCHING)
        left = lacking(wanted)
        if left and all(record["success"] for record in records):
            # of two git-annex at once, one may leave the pointer of an unlocked file whose content it has fetched
            ask_annex(dataset, "fsck", left, "--fast")
            left = lacking(left)
        for path in left:
            if os.path.islink(dataset / path) and not content_of(dataset, path, links_to).key:
                raise SourceError("is not in the dataset", path)  # otherwise it may be missing only for a moment
        if left and said == "not available":  # all that it says if it knows no copy: no retry can help
            raise SourceError(
                "git-annex knows of no copy of its content",
                left[0],
                "ask the dataset's keepers, or leave the participant out",
            )
        if left:
            # without this file, git-annex cannot look up "tcp", and skips the source
            fix = "" if Path("/etc/protocols").exists() else "install netbase, needed for HTTP, and remove the clone"
            said = said.replace(  # its advice for a full tier only helps those who call it themselves
                " (use --force to override this check or adjust annex.diskreserve)",
                "; free some on the dataset's tier: git-annex leaves 100 MB there",
            )
            raise SourceError(f"could not be fetched: {said or UNEXPLAINED}", left[0], fix)

    retry(fetch, settings, say)
    for path in missing:
        # if another run has dropped it, staging reports that
        with suppress(FileNotFoundError), open_in_dataset(dataset, path, links_to) as file:
            os.fsync(file.fileno())
            for folder in Path(os.path.realpath(dataset / path)).parents[:3]:  # made by git-annex for the file
                flush_folder(folder)
    return len(missing)


def drop_images(dataset: Path, paths: Sequence[str]) -> str:
    """Drop contents from the dataset tier; returns why git-annex kept some, or an empty text.

    git-annex keeps contents of which it finds no other copy; that costs only space.
    """
    return ask_annex(dataset, "drop", [path for path in paths if is_present(dataset, path)])[1]
