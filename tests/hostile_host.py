"""What hostile containers are after: a secret of the host, and a folder to write to; and images that are after them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from container_images import Engine, make_tiny
from support import Ended, Project, save_image, small_head

CANARY = b"c4n4ry-0f-th3-h0st"
SWITCHES = ("--sdm", "apptainer", "--keep-going")


@dataclass(frozen=True)
class Host:
    """A project on a machine with a secret.

    Attributes
    ----------
    folder
        Everything lies below it.
    """

    folder: Path
    project: Project

    @classmethod
    def at(cls, folder: Path) -> Host:
        host = cls(folder, Project.at(folder / "project"))
        host.secret.parent.mkdir(mode=0o700)
        host.secret.write_bytes(CANARY + b"\n")
        host.secret.chmod(0o600)
        (host.trap / "inner").mkdir(parents=True)
        (host.trap / "log").write_bytes(CANARY)
        (host.trap / "exit").write_text("0\n")
        save_image(host.trap / "brain_mask.nii.gz", (small_head() > 250).astype("int16"))
        return host

    @property
    def secret(self) -> Path:
        """A file that nobody but the user may read, in a folder of the same kind."""
        return self.folder / "private/secret"

    @property
    def trap(self) -> Path:
        """A folder that looks like a tool's own, with a mask that would be accepted."""
        return self.folder / "trap"

    def image(self, engine: Engine, app: str = "true", **programs: str) -> str:
        """Path of an image with hostile programs, in which SECRET and TRAP stand for the paths of those."""

        def placed(text: str) -> str:
            return text.replace("SECRET", str(self.secret)).replace("TRAP", str(self.trap))

        scripts = {name: placed(text) for name, text in programs.items()}
        return str(make_tiny(engine, self.folder, placed(app), scripts))

    def configure(self, labels: Iterable[str], **sections: Any) -> None:
        """Configure a run over participants."""
        self.project.heads(*labels)
        self.project.configure(containers={"form": "sandbox", **sections.pop("containers", {})}, **sections)

    def run(self, *words: str) -> Ended:
        """A run that takes, changes and leaves nothing of the host, whatever its containers do."""
        before = self.untouched()
        ended = self.project.snakemake(*words, *SWITCHES)
        assert self.untouched() == before
        assert holding_canary(self.project.folder) == []
        assert CANARY.decode() not in ended.output
        assert "Traceback" not in ended.output
        assert self.project.leftovers() == []
        return ended

    def untouched(self) -> list[tuple[str, int, bytes]]:
        """What containers must not change: paths, permissions and contents of secret and trap."""
        return [
            (str(path), path.lstat().st_mode, path.read_bytes() if path.is_file() else b"")
            for folder in (self.secret.parent, self.trap)
            for path in [folder, *sorted(folder.rglob("*"))]
        ]


def holding_canary(folder: Path) -> list[Path]:
    """Files below a folder, links not followed, that hold the secret."""
    paths = [Path(root, name) for root, _, files in os.walk(folder) for name in files]
    return [path for path in paths if path.is_file() and not path.is_symlink() and CANARY in path.read_bytes()]


def by_participant(scripts: Mapping[str, str], word: str) -> str:
    """A script that does something else for each participant, whom a word of its command line names."""
    cases = "\n".join(f"*sub-{label}_* | {label})\n{script}\n;;" for label, script in scripts.items())
    return f'case "{word}" in\n{cases}\nesac'
