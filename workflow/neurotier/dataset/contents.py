"""Contents: get and drop the images of a DataLad dataset, and say what their annex keys tell without having them.

Getting different files side by side is safe; ``datalad run`` and ``datalad save`` are never used, since in parallel
jobs they race on the same repository (datalad#4606).
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from neurotier.dataset.attempts import GoneError, first_message, retry, wait_for_others
from neurotier.dataset.datalad_environment import prepare_environment
from neurotier.errors import InputError, SourceError
from neurotier.files import flush_folder
from neurotier.foreign import file_in_dataset, kind_of, open_file
from neurotier.settings import DatasetSettings

KEY_SIZE = re.compile(r"-s(\d{1,18})-")
"""Size of the content in a git-annex key, such as ``MD5E-s1234--d41d8.nii.gz``."""

OBJECTS = "/annex/objects/"
"""What stands before the key, in a link as in a pointer."""

ANYWHERE = ("/",)
"""Where links may lead in a folder that the user has made."""

POINTER_BYTES = 32 * 1024
"""How long an unlocked file without its content may be at most."""


@dataclass(frozen=True)
class Content:
    """What a file of a dataset holds, as far as it can be told without reading it.

    Attributes
    ----------
    key
        Its git-annex key, of a link or an unlocked pointer; empty for anything else.
    size_bytes
        Size of the content, by the key if there is one; ``None`` if nothing tells.
    here_bytes
        Size of what is here; ``None`` if nothing is.
    version
        What tells one content of the file from another: its key, or size and time of change.
    """

    key: str = ""
    size_bytes: int | None = None
    here_bytes: int | None = None
    version: str = ""

    @property
    def is_here(self) -> bool:
        """Whether the content is here, and whole: a power cut leaves empty files behind."""
        return self.here_bytes is not None and self.here_bytes == self.size_bytes

    @property
    def is_damaged(self) -> bool:
        """Whether something else is here than the key says."""
        return bool(self.key) and self.here_bytes is not None and not self.is_here


def content_of(dataset: Path, path: str, links_to: Sequence[str] = ()) -> Content:
    """What a file of a dataset holds.

    Raises
    ------
    InputError
        If it is a link that leads out of the dataset, a FIFO, or anything else but a file.
    """
    trusted, below = file_in_dataset(dataset, path, links_to)
    key = linked_key(dataset / path)
    try:
        facts = os.lstat(trusted / below)
    except (FileNotFoundError, NotADirectoryError):
        return Content(key, size_in(key), None, key)
    if not stat.S_ISREG(facts.st_mode):
        raise InputError(f"is {kind_of(facts.st_mode)}, and only files are read", where=path)
    if not key and facts.st_size <= POINTER_BYTES:
        key = pointed_key(trusted, below, path)
        if key:
            return Content(key, size_in(key), None, key)
    size = size_in(key)
    version = key or f"{facts.st_size}-{facts.st_mtime_ns}"
    return Content(key, facts.st_size if size is None else size, facts.st_size, version)


def content_if_readable(dataset: Path, path: str, links_to: Sequence[str] = ()) -> Content:
    """What a file holds; nothing, if it must not be read: whoever needs it fails, and says why."""
    try:
        return content_of(dataset, path, links_to)
    except InputError:
        return Content()


def linked_key(file: Path) -> str:
    """The key in a link to the annex; empty for anything else."""
    with suppress(OSError):
        text = os.readlink(file)
        return os.path.basename(text) if OBJECTS in text else ""
    return ""


def pointed_key(folder: Path, below: PurePath, where: str) -> str:
    """The key in a pointer, which stands for an unlocked file without its content; empty for anything else."""
    with suppress(OSError), open_file(folder, below, where) as file:
        first = file.readline(POINTER_BYTES).decode(errors="replace").strip()
        return os.path.basename(first) if first.startswith(OBJECTS) and first.isprintable() else ""
    return ""


def size_in(key: str) -> int | None:
    """The size that a key tells.

    >>> size_in("MD5E-s1234--d41d8.nii.gz"), size_in("URL--http&c%%x.org")
    (1234, None)
    """
    found = KEY_SIZE.search(key)
    return int(found[1]) if found else None


def is_present(dataset: Path, path: str, links_to: Sequence[str] = ()) -> bool:
    """Whether a file has its content: it is no link into nowhere or out of the dataset, no pointer, and whole."""
    try:
        return content_of(dataset, path, links_to).is_here
    except InputError:
        return False


def get_images(dataset: Path, paths: Sequence[str], settings: DatasetSettings, report: Callable[[str], None]) -> int:
    """Have the content of files on the dataset tier, and on its device; how many had to be fetched.

    Raises
    ------
    SourceError
        If a content exists nowhere (at once), or could not be fetched in ``get_attempts`` attempts.
    InputError
        If a file is a link that leads out of the dataset, a FIFO, or anything else but a file.
    """
    contents = {path: content_of(dataset, path, settings.links_to) for path in paths}
    missing = [path for path, content in contents.items() if not content.is_here]
    if not missing:
        return 0
    prepare_environment()
    for path in missing:
        if contents[path].is_damaged:
            report(f"{path}: {contents[path].here_bytes} of {contents[path].size_bytes} bytes are here: fetched again")
            discard(dataset, path)
    from datalad.api import get
    from datalad.support.exceptions import IncompleteResultsError

    def fetch() -> None:
        try:
            get(path=[str(dataset / path) for path in missing], dataset=str(dataset), result_renderer="disabled")
        except IncompleteResultsError as error:
            for path in missing:
                if not is_present(dataset, path, settings.links_to):
                    check_known_somewhere(dataset, path)
            bare = not Path("/etc/protocols").exists()  # git-annex looks up "tcp" there, and else ignores the source
            fix = "install the package netbase, without which git-annex cannot speak HTTP, and remove the clone"
            message = f"could not be fetched: {first_message(error)}"
            raise SourceError(message, where=missing[0], fix=fix if bare else "") from None

    retry(lambda: wait_for_others(fetch, report), settings, report)
    for path in missing:
        flush_content(dataset, path, settings.links_to)
    return len(missing)


def flush_content(dataset: Path, path: str, links_to: Sequence[str]) -> None:
    """Have a fetched content on its device, and the folders that git-annex made for it."""
    trusted, below = file_in_dataset(dataset, path, links_to)
    with open_file(trusted, below, path) as file:
        os.fsync(file.fileno())
    for folder in list((trusted / below).parents)[:3]:
        flush_folder(folder)


def discard(dataset: Path, path: str) -> None:
    """Remove a damaged content, and git-annex's note that it is here.

    Raises
    ------
    SourceError
        If git-annex cannot.
    """
    root, below = repository_of(dataset / path)
    command = ["git", "-C", str(root), "annex", "drop", "--force", "--quiet", "--", f"./{below}"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["git-annex gave no reason"])[-1]
        raise SourceError(f"its content is damaged and cannot be discarded: {said}", where=path)


def repository_of(file: Path) -> tuple[Path, Path]:
    """The repository that holds a file, and the file's path below it."""
    root = next(parent for parent in file.parents if (parent / ".git").exists())
    return root, file.relative_to(root)


def check_known_somewhere(dataset: Path, path: str) -> None:
    """Raise :class:`GoneError` if git-annex knows of no copy of a file: then no retry can help."""
    from datalad.runner import CommandError
    from datalad.support.annexrepo import AnnexRepo

    if not content_of(dataset, path).key:
        raise GoneError("is not in the dataset", where=path)
    root, below = repository_of(dataset / path)
    try:
        copies = AnnexRepo(str(root)).whereis(str(below))
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
    present = [path for path in paths if is_present(dataset, path)]
    if not present:
        return ""
    prepare_environment()
    from datalad.api import drop
    from datalad.support.exceptions import IncompleteResultsError

    try:
        drop(path=[str(dataset / path) for path in present], dataset=str(dataset), result_renderer="disabled")
    except IncompleteResultsError as error:
        return first_message(error)
    kept = [path for path in present if is_present(dataset, path)]  # what counts is what is there, not what was said
    return f"git-annex kept {len(kept)} of {len(present)} and gave no reason" if kept else ""
