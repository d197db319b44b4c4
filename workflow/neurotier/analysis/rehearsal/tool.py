"""The tool ``rehearsal``: for each image it does what a description says."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from neurotier.analysis.rehearsal.description import BLOCK_BYTES, Description, in_blocks, read_description, read_text
from neurotier.analysis.rehearsal.replay import replay
from neurotier.analysis.tool import Tool
from neurotier.core.places import short_hash
from neurotier.core.work_folders import OUT

OWN_MEMORY_MB = 100
"""Memory of the job besides what is described."""


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
        return self.description.threads

    def work_bytes(self, images: int, input_bytes: int) -> int:
        made = self.description  # images are done one after the other, and their results are kept
        return input_bytes + made.peak_bytes + made.folders * BLOCK_BYTES + images * in_blocks(made.results)

    def work_files(self, images: int) -> int:
        made = self.description
        return made.peak_files + made.folders + images * sum(count for count, _ in made.results)

    def content_key(self) -> str:
        """What the description says, in eight digits: when that changes, everybody is analysed again."""
        self.load()
        return short_hash(read_text(self.profile)[0])

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
