"""Identity: what distinguishes one image from another before it is made, and what it must be once it is there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from neurotier.containers.build import BASE, build_arguments, ingredients
from neurotier.containers.reference import Reference, read_reference


def content_of(text: str, given: Mapping[str, str]) -> str:
    """What determines the image of a reference: when it changes, the image is obtained again.

    Parameters
    ----------
    text
        The reference.
    given
        Build arguments of the configuration.
    """
    reference = read_reference(text, "image")
    if reference.kind != "definition":
        return identity(reference, {})
    arguments = build_arguments(reference.path, {"MIRROR": "any", **given})
    base = arguments.get(BASE, "")
    below = content_of(str(reference.path.parent / base), given) if base.endswith(".def") else ""
    return ingredients(reference.path, arguments) + below


def identity(reference: Reference, arguments: dict[str, str], store: Path | None = None) -> str:
    """What distinguishes images in the store, known before they are made.

    A base image of the store itself counts by its name, which stands for all that it is made of: where the store lies
    makes no other image.
    """
    base = Path(arguments.get(BASE, ""))
    if store is not None and base.parent == store:
        arguments = {**arguments, BASE: base.name}
    if reference.dataset is not None:
        return reference.dataset.text
    if reference.kind == "registry":
        return reference.text
    if reference.kind == "definition":
        return ingredients(reference.path, arguments)
    facts = (reference.path / "index.json" if reference.path.is_dir() else reference.path).stat()
    given = reference.path if reference.kind == "file" else reference.text
    return f"{given} {facts.st_size} {facts.st_mtime_ns}"
