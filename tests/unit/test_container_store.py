"""The store of container images: obtained once, whole or not at all, and placed again where a tier has lost them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from container_images import Engine, make_tiny, tiny_root
from neurotier.containers.reference import build_arguments, content_of, make_image, mirror, read_reference
from neurotier.containers.store import Store, placed_sha256, remove_unused, sha256, stored_images
from neurotier.core.errors import ContainerError, SettingsError, SourceError, TierError
from neurotier.core.files import exclusive, read_json, write_text
from stores import SETTINGS, names, store_in
from support import ROOT, quiet, script, wait_for

LOCKS = Path("/proc/locks")


DEFINITION = """\
Bootstrap: localimage
From: {{ BASE }}

%files
    extra.txt /opt/extra.txt

%post
    sleep {{ PAUSE }}
"""


@pytest.fixture
def definition(tmp_path: Path) -> Path:
    """A definition file that builds in a second, with one build argument and one file."""
    file = tmp_path / "definition/tool.def"
    write_text(file, DEFINITION)
    write_text(file.with_name("extra.txt"), "extra\n")
    return file


def building(folder: Path, engine: Engine, pause: str, **own: Any) -> Store:
    """A store that builds the definition file, which lasts so many seconds, on a tiny image."""
    arguments = {"BASE": str(tiny_root(folder)), "PAUSE": pause}
    return store_in(folder, engine, settings=replace(SETTINGS, build_arguments=arguments), **own)


def test_definition_files_take_their_mirror_from_this_machine() -> None:
    for file in (ROOT / "containers").glob("*.def"):
        assert all(build_arguments(file, {"FSL_CHANNEL": "somewhere"}).values())
    assert mirror()
    with pytest.raises(SettingsError, match=r"containers\.build_arguments: fsl-bet\.def asks for FSL_CHANNEL"):
        build_arguments(ROOT / "containers/fsl-bet.def", {})
    for file in (ROOT / "containers").iterdir():
        assert mirror().rstrip("/") not in file.read_text(), f"{file.name} names this machine's mirror"


def test_a_tag_beside_the_digest_is_not_told_to_the_engine(tmp_path: Path) -> None:
    """It refuses both together, and only the digest counts."""
    program = script(tmp_path / "engine", 'printf %s "$3" >"$2"')
    for name in ("docker://x.org:5000/a/tiny", "docker://tiny", "oras://x.org/tiny"):
        text, target = f"{name}:1.0@sha256:{64 * '0'}", tmp_path / "made"
        make_image(str(program), read_reference(text, "app.image"), {}, target, tmp_path / "log", quiet)
        assert target.read_text() == f"{name}@sha256:{64 * '0'}"


def test_what_another_start_is_placing_is_waited_for_and_kept(engine: Engine, tiny_image: Path, tmp_path: Path) -> None:
    said: list[str] = []
    made = store_in(tmp_path, engine, "sandbox", say=said.append)
    image = made.obtain(str(tiny_image), "tool.bet.image")
    placed, (notes,) = made.file(image), made.kept.glob("*.tree")
    files = {path: path.rename(tmp_path / path.name) for path in (placed, notes)}
    lock = placed.with_name(f".{placed.name}.lock").stat().st_ino
    with ThreadPoolExecutor() as other, exclusive(placed):
        path = other.submit(made.place, image)
        wait_for(lambda: any("->" in line and f":{lock} " in line for line in LOCKS.read_text().splitlines()))
        for final, kept in files.items():
            kept.rename(final)
    assert path.result() == placed
    assert not [line for line in said if "was altered" in line]


def test_a_changed_definition_or_file_means_something_else(definition: Path, tiny_image: Path, tmp_path: Path) -> None:
    given, base = {"BASE": "base.def", "PAUSE": "0"}, definition.with_name("base.def")
    base.write_bytes(b"Bootstrap: debootstrap\nMirrorURL: {{ MIRROR }}\n# Jos\xe9\n")  # in whatever encoding
    meant = [content_of(str(definition), given)]
    assert content_of(str(definition), given) == meant[0]
    for changed in (definition, definition.parent / "extra.txt", base):
        changed.write_bytes(changed.read_bytes() + b"# another line\n")
        meant.append(content_of(str(definition), given))
    assert len(set(meant)) == 4
    base.write_text("Bootstrap: localimage\nFrom: {{ BASE }}\n%arguments\n    BASE=base.def\n")
    with pytest.raises(SourceError, match="is built from itself"):
        content_of(str(definition), given)
    own = tmp_path / "own.sif"
    own.write_bytes(tiny_image.read_bytes())
    before = content_of(str(own), {})
    own.write_bytes(tiny_image.read_bytes() + b"more")
    assert content_of(str(own), {}) != before


def test_a_definition_is_built_once_for_all_who_ask_at_the_same_time(
    engine: Engine, definition: Path, tmp_path: Path
) -> None:
    said: list[str] = []
    made = building(tmp_path, engine, "1", say=said.append)
    with ThreadPoolExecutor(8) as others:
        images = list(others.map(made.obtain, [str(definition)] * 8, ["tool.bet.image"] * 8))
    assert len([line for line in said if line.startswith("building")]) == 1
    assert len({image.sha256 for image in images}) == 1
    assert len(names(made.images)) == 1
    assert [name.rpartition(".")[2] for name in names(made.kept)] == ["json", "sif"]


def test_a_build_that_fails_says_why_and_leaves_nothing(engine: Engine, definition: Path, tmp_path: Path) -> None:
    made = building(tmp_path, engine, "0; nonesuch")
    with pytest.raises(ContainerError, match=r"^building tool\.def: failed: FATAL"):
        made.obtain(str(definition), "tool.bet.image")
    assert names(made.kept) == names(made.images) == []


@pytest.mark.parametrize("form", ["sif", "sandbox"])
def test_a_tier_without_room_is_named_and_left_as_it_was(
    engine: Engine, tiny_image: Path, tmp_path: Path, mount_tmpfs: Callable[..., Path], form: str
) -> None:
    made = store_in(tmp_path, engine, form, images=mount_tmpfs(tmp_path / "full", "size=512k"))
    with pytest.raises((TierError, OSError), match=str(made.images)):
        made.obtain(str(tiny_image), "tool.bet.image")
    assert names(made.images) == []


ALTERATIONS = {
    "content": "echo evil >opt/tool",
    "permissions": "chmod 4755 opt/tool",
    "another file": "touch opt/more",
    "a file less": "rm opt/tool",
    "a link elsewhere": "ln -sfn /evil opt/link",
    "a FIFO": "rm opt/tool; mkfifo opt/tool",
    "a link for all": 'root=$PWD; mv "$root" ../evil; ln -s evil "$root"',
    "nothing else": "touch opt/tool",
}
"""What is done to an unpacked image, in its folder."""


@pytest.fixture
def own_image(engine: Engine, tmp_path: Path) -> Path:
    """An image with a file and a link that can be altered when it is unpacked."""
    folder = tmp_path / "own"
    folder.mkdir()
    root = tiny_root(folder)
    (root / "opt/tool").write_text("mine")
    (root / "opt/link").symlink_to("tool")
    return make_tiny(engine, folder)


@pytest.mark.parametrize("alteration", ALTERATIONS)
def test_an_unpacked_image_that_was_altered_is_placed_again_by_the_next_run(
    engine: Engine, own_image: Path, tmp_path: Path, alteration: str
) -> None:
    said: list[str] = []
    first = store_in(tmp_path, engine, "sandbox", verified=tmp_path / "verified", run="first", say=said.append)
    image = first.obtain(str(own_image), "tool.bet.image")
    placed = first.file(image)
    genuine = placed_sha256(placed)
    subprocess.run(["sh", "-c", ALTERATIONS[alteration]], cwd=placed, check=True)
    said.clear()
    assert replace(first, run="second").place(image) == placed
    assert placed_sha256(placed) == genuine
    again = [line for line in said if line.endswith("(its digest has changed): placing it again")]
    assert len(again) == (alteration != "nothing else"), said
    assert (placed / "opt/link").read_text() == "mine"


def test_a_run_verifies_an_image_once_for_all_its_jobs(engine: Engine, own_image: Path, tmp_path: Path) -> None:
    """Jobs that come later read nothing of it: told by the access times of a file in it."""
    first = store_in(tmp_path, engine, "sandbox", verified=tmp_path / "verified", run="first")
    image = first.obtain(str(own_image), "tool.bet.image")
    (marker,) = (tmp_path / "verified").iterdir()
    placed = first.file(image)
    assert read_json(marker) == {"run": "first", "host": socket.gethostname(), "path": str(placed)}
    file = placed / "opt/tool"
    for job, reads in ((first, False), (replace(first, run="second"), True), (replace(first, run="second"), False)):
        os.utime(file, (0, file.stat().st_mtime))
        job.place(image)
        assert (file.stat().st_atime > 0) == reads
    marker.write_text('{"run"')
    os.utime(file, (0, file.stat().st_mtime))
    replace(first, run="second").place(image)
    assert file.stat().st_atime > 0, "a damaged marker says nothing"


def test_an_image_file_that_was_altered_is_placed_again_or_refused(
    engine: Engine, definition: Path, tiny_image: Path, tmp_path: Path
) -> None:
    made = building(tmp_path, engine, "0")
    own = made.obtain(str(tiny_image), "tool.bet.image")
    damage(made.file(own))
    made.place(own)
    assert sha256(made.file(own)) == own.sha256
    built = made.obtain(str(definition), "tool.bet.image")
    damage(made.file(built))  # the store's own, which has two names
    what, fix = rf"\(sha256 {built.sha256[:12]}\.\.\. then, ", "start with --forcerun obtain_image$"
    with pytest.raises(ContainerError, match=f"{what}.*{fix}"):
        made.place(built)
    again = made.obtain(str(definition), "tool.bet.image")
    assert sha256(made.file(again)) == again.sha256


def damage(image: Path) -> None:
    """Change a few bytes in the middle of a file, and not its size."""
    with image.open("r+b") as file:
        file.seek(image.stat().st_size // 2)
        file.write(b"damaged")


def test_an_image_that_both_store_and_tier_have_lost_is_obtained_again_unless_it_has_changed(
    engine: Engine, own_image: Path, tmp_path: Path
) -> None:
    made = store_in(tmp_path, engine, "sandbox")
    image = made.obtain(str(own_image), "tool.bet.image")
    for file in made.kept.glob("*.json"):
        file.unlink()
    (made.file(image) / "opt/tool").write_text("spoiled")
    made.place(image)
    assert (made.file(image) / "opt/tool").read_text() != "spoiled"
    damage(own_image)
    made.place(image)  # what was unpacked before is what it was
    for lost in ([made.file(image)], made.kept.glob("*.json")):
        subprocess.run(["rm", "-r", *lost], check=True)
        with pytest.raises(ContainerError, match="has changed since it was obtained"):
            made.place(image)
        assert names(made.images) == []


def stored_three(folder: Path) -> tuple[Path, Path]:
    """A store of two images that were used 40 days and one day ago, of the user's own, and of one that is damaged."""
    kept, images = folder / "kept", folder / "images"
    for name, sha, days in (("old-11111111", "a" * 64, 40), ("new-22222222", "b" * 64, 1)):
        (images / f"{name[:3]}-{sha[:12]}.sandbox/bin").mkdir(parents=True)
        (kept / f"{name[:3]}-{sha[:12]}.cache").mkdir(parents=True)
        (kept / f"{name}.sif").write_bytes(b"x" * 1000)
        (kept / f"{name}.json").write_text(json.dumps({"sha256": sha, "size_bytes": 1000}))
        os.utime(kept / f"{name}.json", (time.time() - days * 86_400,) * 2)
    (folder / "own.sif").write_bytes(b"mine")
    own = {"sha256": "c" * 64, "size_bytes": 4, "source": str(folder / "own.sif")}
    for name, text in (("own-44444444", json.dumps(own)), ("cut-33333333", '{"sha256"')):
        (kept / f"{name}.json").write_text(text)
        os.utime(kept / f"{name}.json", (0, 0))
    return kept, images


def test_images_that_nobody_uses_leave_store_and_tier_and_a_file_of_the_users_stays(tmp_path: Path) -> None:
    kept, images = stored_three(tmp_path)
    removed = {image.name: (image, files) for image, files in remove_unused(list(stored_images(kept, images)), 30, ())}
    assert sorted(removed) == ["old-11111111", "own-44444444"]
    assert names(kept) == ["cut-33333333.json", "new-22222222.json", "new-22222222.sif", "new-bbbbbbbbbbbb.cache"]
    assert names(images) == ["new-bbbbbbbbbbbb.sandbox"]
    own, files = removed["own-44444444"]
    assert files == [own.facts]
    assert (tmp_path / "own.sif").read_bytes() == b"mine"


def test_the_image_of_these_results_and_one_that_was_just_used_stay(tmp_path: Path) -> None:
    kept, images = stored_three(tmp_path)
    stored = list(stored_images(kept, images))
    os.utime(kept / "own-44444444.json")  # a run has begun since the store was listed
    assert not list(remove_unused(stored, 30, in_use=["a" * 64]))
    assert len(names(kept)) == 8
