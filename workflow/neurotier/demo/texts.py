"""Texts of the demonstration dataset: READMEs, descriptions and sidecars, which all say that it is simulated."""

from __future__ import annotations

import json
from typing import Any

BIDS_VERSION = "1.10.0"

COLUMNS = {
    "age": {"Description": "Age of the participant, invented for the demonstration", "Units": "year"},
    "sex": {"Description": "Sex of the participant, invented", "Levels": {"F": "female", "M": "male"}},
}


def superdataset_readme(description: str) -> str:
    """README of the superdataset."""
    return (
        "# Demonstration dataset of neurotier\n\n"
        "A DataLad superdataset shaped like that of the Consortium for Reliability and Reproducibility (CoRR): "
        "every folder is the BIDS dataset of one site.\n\n" + origin(description)
    )


def origin(description: str) -> str:
    """Origin of the images, and what they must not be used for."""
    return (
        f"Nobody was scanned for these data. All T1w images were computed from {description}: another position, "
        "size, bias field and noise for each 'participant'; ages and sexes are invented; the functional images are "
        "nothing but noise. Use them to try out software, never to learn about brains.\n\n"
        "The simulated head is drawn around the ICBM 2009a brain template (Copyright (C) 1993-2009 Louis Collins, "
        "McConnell Brain Imaging Centre, Montreal Neurological Institute, McGill University), which may be used, "
        "copied, modified and distributed for any purpose without fee if this notice stays. The head ch2 is "
        "Colin27 of the same institute, as packaged with MRIcron. For images made from another head, "
        "the terms of that head hold.\n"
    )


def site_texts(site: str, description: str, participants: list[tuple[str, int, str]]) -> dict[str, str]:
    """Text files of a site by name; ``participants`` are rows of label, age in years and sex."""
    about = {
        "Name": f"neurotier demonstration, {site}",
        "BIDSVersion": BIDS_VERSION,
        "DatasetType": "raw",
        "License": "see README.md",
        "Authors": ["the maintainers of neurotier"],
        "Acknowledgements": f"T1w images computed from {description}",
        "HowToAcknowledge": "Not data to be cited; name the software instead",
        "Funding": ["none"],
        "EthicsApprovals": ["not applicable: nobody was scanned"],
        "Keywords": ["demonstration", "simulated"],
        "GeneratedBy": [{"Name": "neurotier", "Description": "neurotier.demo"}],
    }
    rows = [("participant_id", "age", "sex"), *participants]
    return {
        "dataset_description.json": json.dumps(about, indent=2) + "\n",
        "README.md": f"# {site} of the demonstration dataset of neurotier\n\n" + origin(description),
        "participants.tsv": "".join("\t".join(map(str, row)) + "\n" for row in rows),
        "participants.json": json.dumps(COLUMNS, indent=2) + "\n",
    }


def bold_facts(repetition_time_s: float) -> dict[str, Any]:
    """Sidecar of a functional image."""
    return {
        **simulated_scanner("Noise only, in place of a functional image"),
        "TaskName": "rest",
        "TaskDescription": "None: these data are noise",
        "RepetitionTime": repetition_time_s,
    }


def simulated_scanner(description: str) -> dict[str, Any]:
    """The scanner in a sidecar, where there was none."""
    return {
        "SeriesDescription": description,
        "Manufacturer": "simulated",
        "ManufacturersModelName": "neurotier.demo",
        "MagneticFieldStrength": 3,
        "InstitutionName": "none",
    }
