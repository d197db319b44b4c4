"""The group stage: brain volumes of all images, their mean and spread, and outliers to look at.

The published group step is the average size of the brain masks in voxels; voxels differ between scanners, so volumes in
mm3 are given, too.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from neurotier.core.files import Record
from neurotier.core.tables import Row, Rows
from neurotier.run.profile_tables import site_of

OF_IMAGE = ("session", "bids_run", "image", "mask", "brain_voxels", "voxel_volume_mm3")

ROBUST_Z_LIMIT = 3.5
"""An image is flagged beyond this absolute score (Iglewicz and Hoaglin 1993)."""

FEWEST_IMAGES = 5
"""With fewer images, the median absolute deviation is too uncertain to justify a flag."""


def group_rows(records: Iterable[Record]) -> Rows:
    """Rows of ``group.tsv``: one per image, with outliers flagged."""
    rows = [
        {
            "participant": record["participant"],
            "site": site_of(record["participant"]),
            **{key: image[key] for key in OF_IMAGE},
            "brain_volume_mm3": image["brain_voxels"] * image["voxel_volume_mm3"],
        }
        for record in records
        for image in record["images"]
    ]
    for row, score in zip(rows, robust_z([row["brain_volume_mm3"] for row in rows]), strict=True):
        row |= {"robust_z": score, "outlier": score is not None and abs(score) > ROBUST_Z_LIMIT}
    return rows


def robust_z(values: Sequence[float]) -> list[float | None]:
    """0.6745 (x - median) / MAD of each value; ``None`` for too few values or no spread.

    >>> [round(score, 2) for score in robust_z([1, 2, 3, 4, 100])]
    [-1.35, -0.67, 0.0, 0.67, 65.43]
    """
    if len(values) < FEWEST_IMAGES:
        return [None] * len(values)
    median = statistics.median(values)
    deviation = statistics.median(abs(value - median) for value in values)
    return [0.6745 * (value - median) / deviation if deviation > 0 else None for value in values]


def summary(rows: Sequence[Row]) -> Record:
    """The dataset's mean and standard deviation of brain size, and its outliers."""
    sizes = {}
    for name in ("brain_volume_mm3", "brain_voxels"):
        values = [row[name] for row in rows]
        sizes[f"mean_{name}"] = statistics.fmean(values) if values else None
        sizes[f"sd_{name}"] = statistics.stdev(values) if len(values) > 1 else None
    return {
        "images": len(rows),
        "participants": len({row["participant"] for row in rows}),
        **sizes,
        "outliers": [row["image"] for row in rows if row["outlier"]],
    }
