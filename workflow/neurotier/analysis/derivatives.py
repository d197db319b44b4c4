"""BIDS Derivatives: sidecars and dataset descriptions.

Nothing here may depend on tier, node, time or parallelism: the same data and tool give the same bytes, which a test
checks.
"""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from neurotier import __version__
from neurotier.core.files import Facts, Record, write_json
from neurotier.dataset.bids import derivative_name

BIDS_VERSION = "1.10.0"
SOURCE_LINK = "raw"
"""Name of the source dataset in BIDS URIs, as in ``bids:raw:sub-01/anat/sub-01_T1w.nii.gz``."""


def write_sidecars(in_site: PurePosixPath, folder: Path, activity: str) -> None:
    """Write the sidecars of one image's mask and brain.

    Parameters
    ----------
    in_site
        Path of the source image, relative to its site.
    folder
        Folder on the work tier; it is flushed when it is published.
    activity
        URI of the activity that made them (:mod:`neurotier.analysis.activity`); empty if they do not refer to one.
    """
    refers = {"GeneratedBy": activity} if activity else {}
    for suffix, name, value in (("mask", "Type", "Brain"), ("T1w", "SkullStripped", True)):
        write_json(
            folder / derivative_name(in_site, suffix, ".json"),
            {name: value, "Sources": [f"bids:{SOURCE_LINK}:{in_site}"], **refers},
            durable=False,
        )


def write_description(folder: Path, site: str, source: Record, tool: str, version: str, said: Facts, name: str) -> None:
    """Write ``dataset_description.json`` of one site's derivatives.

    Parameters
    ----------
    folder
        Folder of the derivative dataset.
    site
        Path of the site in the source dataset, empty if it has none.
    source
        Facts of the site: ``url`` (a URI that does not depend on the location of the clone) and ``version`` (its
        commit; may be empty).
    tool, version
        The analysis tool.
    said
        Further facts about the tool.
    name
        What the derivatives are.
    """
    description = {
        "Name": f"{name} of {site}" if site else name,
        "BIDSVersion": BIDS_VERSION,
        "DatasetType": "derivative",
        "GeneratedBy": [
            {"Name": "neurotier", "Version": __version__},
            {"Name": tool, "Version": version, **said},
        ],
        "SourceDatasets": [{key: source[key.lower()] for key in ("URL", "Version") if source[key.lower()]}],
        "DatasetLinks": {SOURCE_LINK: source["url"]},
    }
    write_json(folder / "dataset_description.json", description)


def generated_by(how: Facts) -> Record:
    """What a description says about how derivatives were made: the options, and the container image."""
    options = ", ".join(f"{name}: {value}" for name, value in how["options"].items())
    said: Record = {"Description": f"with {options}"} if options else {}
    if container := how.get("container"):
        said["Container"] = {"Type": "apptainer", "Tag": container["digest"], "URI": container["image"]}
    return said
