"""The tool ``rehearsal``: for each image it does what a description says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from neurotier.analysis.rehearsal.description import BLOCK_BYTES, Description, in_blocks, read_description, short_key
from neurotier.analysis.rehearsal.replay import replay
from neurotier.analysis.tool import Tool
from neurotier.core.work_folders import OUT

OWN_MEMORY_MB = 100
"""Memory of the job besides what is described."""

FILE_S, BYTES_PER_S = 50e-6, 500e6
"""About what a small file takes to be made, s, and how fast bytes are written: only to say who shares a job."""


@cache
def described(profile: str, scale: float) -> Description:
    """A description at a scale."""
    return read_description(profile).scaled(scale)


@dataclass(frozen=True)
class Rehearsal(Tool):
    """What a described pipeline does to storage and processors (:mod:`neurotier.analysis.rehearsal.replay`)."""

    profile: str
    scale: float
    name = "rehearsal"

    @property
    def description(self) -> Description:
        """What is done for an image, at the scale that is asked for."""
        return described(self.profile, self.scale)

    @property
    def memory_mb(self) -> tuple[int, int]:
        """Peak memory of a participant job; images are done one after the other."""
        return OWN_MEMORY_MB + self.description.memory_bytes // 1_000_000, 0

    @property
    def threads(self) -> int:
        """Cores that a participant takes."""
        return self.description.threads

    def work_bytes(self, images: int) -> int:
        """Room on the work tier for so many images, one after the other, whose results are kept, bytes."""
        folders_bytes = self.description.folders * BLOCK_BYTES
        return self.description.peak_bytes + folders_bytes + images * in_blocks(self.description.results)

    def work_files(self, images: int) -> int:
        """Files and folders on the work tier, likewise."""
        return self.description.peak_files + self.description.folders + images * self.description.result_files

    def content_key(self) -> str:
        """What the description says, in eight digits."""
        return short_key(self.profile)

    def version(self) -> str:
        """That of the replay; reading the description here says early what is wrong with it."""
        _ = self.description
        return "1"

    def expected_s(self, size_mb: float) -> float:
        made = self.description
        moved_s = (made.read_bytes + made.written_bytes) / BYTES_PER_S
        return 0.05 + made.cpu_s / made.threads + FILE_S * made.made_files + moved_s

    def load(self) -> None:
        _ = self.description

    def extract(self, head: Any, image: Path, folder: Path, log: Path, name: str) -> None:
        replay(self.description, image, folder, results_folder(folder.parent / OUT, name))


def results_folder(out: Path, name: str) -> Path:
    """Where what is left of an image goes: a folder of its own beside the derivatives of others.

    >>> from pathlib import Path
    >>> str(results_folder(Path("out"), "NYU/sub-01/ses-1/anat/sub-01_ses-1_T1w.nii.gz"))
    'out/sub-01/ses-1/anat/sub-01_ses-1_T1w'
    """
    parts = name.split("/")
    first = next(place for place, part in enumerate(parts) if part.startswith("sub-"))
    return out.joinpath(*parts[first:-1], parts[-1].partition(".")[0])
