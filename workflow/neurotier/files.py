"""Files and folders: written whole or not at all, removed whole, and kept for one process at a time."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def write_text(path: Path, text: str) -> None:
    """Write text, whole or not at all."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file by renaming a finished one to its name; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o666 & ~current_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def write_json(path: Path, data: Any) -> None:
    """Write JSON, whole or not at all."""
    write_text(path, json.dumps(data, indent=2) + "\n")


def read_json(path: Path) -> Any:
    """Read JSON."""
    return json.loads(path.read_text())


def current_umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def remove_tree(folder: Path) -> None:
    """Remove a folder if it exists, with the write-protected folders of git-annex in it."""
    if not folder.exists():
        return
    for path, _, _ in os.walk(folder):
        # git-annex takes away the owner's right to write; nobody but root could remove these as they are.
        Path(path).chmod(stat.S_IRWXU)
    shutil.rmtree(folder)


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Keep other processes out while a folder is made; they wait, and then find it there."""
    import fasteners

    folder.parent.mkdir(parents=True, exist_ok=True)
    with fasteners.InterProcessLock(str(folder.with_name(f".{folder.name}.lock"))):
        yield
