"""What the stand-ins of BIDS Apps share: they are strict about what they are given, and do nothing with it."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path


def positive(text: str) -> int:
    """A whole number above 0, as the apps want cores."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must not be less than one")
    return number


def memory(text: str) -> str:
    """Digits and perhaps a unit: the apps read nothing else, not even a point."""
    if not re.fullmatch(r"[0-9]+[GTMKB]?", text) or int(re.sub(r"\D", "", text)) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no size")
    return text


def existing(text: str) -> Path:
    path = Path(text)
    if not path.exists():
        raise argparse.ArgumentTypeError(f"{text} does not exist")
    return path


def filters(text: str) -> dict[str, object]:
    """A BIDS filter file: JSON, an object."""
    read = json.loads(existing(text).read_text())
    if not isinstance(read, dict):
        raise argparse.ArgumentTypeError(f"{text} holds no filters")
    return read


def parser(name: str) -> argparse.ArgumentParser:
    """A command line on which nothing may be abbreviated."""
    return argparse.ArgumentParser(prog=name, allow_abbrev=False)


def begin(name: str, work_dir: Path, bids_dir: Path) -> None:
    """Say how the app was called; check that it can write where it must, and nowhere else."""
    print(f"{name} called with {json.dumps(sys.argv[1:])}")
    work_dir.mkdir(exist_ok=True)
    (work_dir / "node").mkdir()
    (work_dir / "node" / "result.pklz").write_bytes(b"result")
    refuse_writable(bids_dir)
    flow = os.environ.get("TEMPLATEFLOW_HOME")
    if flow:
        templates = sorted(path.name for path in Path(flow).glob("tpl-*"))
        print(f"{name} found {templates} in {flow}")
        if not templates:
            sys.exit(f"{flow} holds no template, and there is no network")
        refuse_writable(Path(flow))


def refuse_writable(folder: Path) -> None:
    """End if a folder that is somebody else's can be written to."""
    try:
        (folder / "written").write_text("written")
    except OSError:
        return
    sys.exit(f"{folder} can be written to")


def subject_of(bids_dir: Path, labels: list[str] | None) -> Path:
    """The folder of the one participant; end unless it is the only one in the dataset."""
    found = sorted(path.name for path in bids_dir.glob("sub-*"))
    asked = [f"sub-{label.removeprefix('sub-')}" for label in labels or []]
    if found != asked or len(found) != 1:
        sys.exit(f"asked for {asked}, and the dataset has {found}")
    return bids_dir / found[0]


def sessions_of(subject: Path) -> list[str]:
    """Labels of the sessions that are there; an empty one for a participant without."""
    found = sorted(path.name.removeprefix("ses-") for path in subject.glob("ses-*"))
    print(f"sessions: {' '.join(found)}")
    return found or [""]


def describe(out: Path, name: str, version: str) -> None:
    out.mkdir(exist_ok=True)
    description = {"Name": name, "BIDSVersion": "1.4.0", "DatasetType": "derivative"}
    generated = {"GeneratedBy": [{"Name": name, "Version": version}]}
    (out / "dataset_description.json").write_text(json.dumps(description | generated))
