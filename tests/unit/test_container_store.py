"""The store of container images: obtained once, whole or not at all, and placed again where a tier has lost them; and
caches, folders that apps read, which are placed likewise."""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from container_images import Engine, make_tiny, tiny_root
from neurotier.containers.reference import build_arguments, image_identity, make_image, mirror, read_reference
from neurotier.containers.store import (
    Shelf,
    Store,
    examine_cache,
    place_cache,
    placed_sha256,
    remove_unused,
    sha256,
    stored_images,
)
from neurotier.core.errors import ContainerError, InputError, SettingsError, SourceError, TierError
from neurotier.core.files import exclusive, read_json, try_lock, write_text
from stores import SETTINGS, names, store_in
from support import PATIENCE_S, ROOT, checksums, quiet, script, wait_for

DEFINITION = """\
Bootstrap: localimage
From: {{ BASE }}

%files
    extra.txt /opt/extra.txt
    /etc/hostname /opt/hostname

%post
    sleep {{ PAUSE }}

%files
    "two words.txt" /opt
    *.sh /opt
"""


@pytest.fixture
def definition(tmp_path: Path) -> Path:
    """A definition file that builds in a second, with one build argument and one file."""
    file = tmp_path / "definition/tool.def"
    write_text(file, DEFINITION)
    for name in ("extra.txt", "two words.txt", "one.sh"):
        write_text(file.with_name(name), "extra\n")
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
    named = [file.name for file in (ROOT / "containers").iterdir() if mirror().rstrip("/") in file.read_text()]
    assert named == [], "they name this machine's mirror"


def test_a_tag_beside_the_digest_is_not_handed_to_the_engine(tmp_path: Path) -> None:
    """It refuses both together, and only the digest counts."""
    program = script(tmp_path / "engine", 'printf %s "$3" >"$2"')
    for name in ("docker://x.org:5000/a/tiny", "docker://tiny", "oras://x.org/tiny"):
        text, target = f"{name}:1.0@sha256:{64 * '0'}", tmp_path / "made"
        make_image(str(program), read_reference(text, "app.image"), {}, target, tmp_path / "log", quiet)
        assert target.read_text() == f"{name}@sha256:{64 * '0'}"


def test_an_unpacked_image_is_not_said_to_be_absent(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^config key app\.image: .*: is not a file; give a \.sif or \.def file"):
        read_reference(str(tmp_path), "app.image")


@pytest.fixture
def said() -> list[str]:
    """What stores have said."""
    return []


@pytest.fixture
def made(engine: Engine, tmp_path: Path, said: list[str]) -> Store:
    """A store of unpacked images, in a first run of some results."""
    return store_in(tmp_path, engine, "sandbox", verified=tmp_path / "verified", run="first", say=said.append)


def test_what_another_start_is_placing_is_waited_for_and_kept(
    made: Store, said: list[str], tiny_image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = replace(made, verified=None)
    image = made.obtain(str(tiny_image), "tool.bet.image")
    placed, (notes,) = made.file(image), made.kept.glob("*.tree")
    files = {path: path.rename(tmp_path / path.name) for path in (placed, notes)}
    is_waiting = Event()

    def noted(lock: int) -> str:
        if holder := try_lock(lock):
            is_waiting.set()
        return holder

    monkeypatch.setattr("neurotier.core.files.try_lock", noted)
    with ThreadPoolExecutor() as other, exclusive(placed):
        path = other.submit(made.place, image)
        assert is_waiting.wait(PATIENCE_S)
        for final, kept in files.items():
            kept.rename(final)
    assert path.result() == placed
    assert not [line for line in said if "was altered" in line]


def test_a_changed_definition_or_file_means_something_else(definition: Path, tiny_image: Path, tmp_path: Path) -> None:
    given, base = {"BASE": "base.def", "PAUSE": "0"}, definition.with_name("base.def")
    base.write_bytes(b"Bootstrap: debootstrap\nMirrorURL: {{ MIRROR }}\n# Jos\xe9\n")  # in whatever encoding
    meant = [image_identity(str(definition), given)]
    assert image_identity(str(definition), given) == meant[0]
    for changed in (definition, *map(definition.with_name, ("extra.txt", "two words.txt", "one.sh")), base):
        changed.write_bytes(changed.read_bytes() + b"# another line\n")
        meant.append(image_identity(str(definition), given))
    assert len(set(meant)) == 6
    base.write_text("Bootstrap: localimage\nFrom: {{ BASE }}\n%arguments\n    BASE=base.def\n")
    with pytest.raises(SourceError, match="is built from itself"):
        image_identity(str(definition), given)
    own, meant = tmp_path / "own.sif", []
    for more in (b"", b"more"):
        own.write_bytes(tiny_image.read_bytes() + more)
        meant.append(image_identity(str(own), {}))
    assert meant[0] != meant[1]


def test_a_definition_is_built_once_for_all_who_ask_at_the_same_time(
    engine: Engine, definition: Path, tmp_path: Path, said: list[str]
) -> None:
    made = building(tmp_path, engine, "1", say=said.append)
    with ThreadPoolExecutor(8) as others:
        images = list(others.map(made.obtain, [str(definition)] * 8, ["tool.bet.image"] * 8))
    assert sum(line.startswith("building") for line in said) == 1
    assert len({image.sha256 for image in images}) == len(names(made.images)) == 1
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
    made: Store, own_image: Path, said: list[str], alteration: str
) -> None:
    image = made.obtain(str(own_image), "tool.bet.image")
    placed = made.file(image)
    genuine = placed_sha256(placed)
    subprocess.run(["sh", "-c", ALTERATIONS[alteration]], cwd=placed, check=True)
    said.clear()
    assert replace(made, run="second").place(image) == placed
    assert placed_sha256(placed) == genuine
    again = sum(line.endswith("(its digest has changed): placing it again") for line in said)
    assert again == (alteration != "nothing else"), said
    assert (placed / "opt/link").read_text() == "mine"


def test_an_image_of_which_a_tier_cannot_hold_all_is_not_used(engine: Engine, tmp_path: Path) -> None:
    """Such as one without links; here paths become too long, on which unsquashfs goes on just the same."""
    root = tiny_root(tmp_path)
    folder = root / "opt" / "/".join(["d" * 200] * ((4000 - len(str(root))) // 201))
    folder.mkdir(parents=True)
    (folder / "file").touch()
    far = tmp_path / ("d" * 200)
    far.mkdir()
    with pytest.raises(TierError, match=r"cannot hold the unpacked image tiny: failed to .*File name too long"):
        store_in(far, engine, "sandbox").obtain(str(make_tiny(engine, tmp_path)), "tool.bet.image")
    assert not list(far.rglob("*.sandbox"))


def test_why_an_image_cannot_be_unpacked_is_said(made: Store, own_image: Path, tmp_path: Path) -> None:
    damaged = bytearray(own_image.read_bytes())
    damaged[300_000:360_000] = bytes(60_000)
    for content, said in (
        (damaged, r"own\.sif: cannot be unpacked .*; start with --forcerun obtain_image"),
        (bytes(100_000), r"own\.sif: its file system cannot be found: "),
    ):
        (tmp_path / "own.sif").write_bytes(content)
        with pytest.raises(ContainerError, match=said):
            made.unpack(tmp_path / "own.sif", tmp_path / "unpacked")


def test_the_file_system_that_the_engine_starts_is_unpacked_if_an_image_has_several(
    engine: Engine, made: Store, own_image: Path, tmp_path: Path
) -> None:
    (tiny_root(tmp_path) / "opt/tool").write_text("second")
    part, of_squashfs = tmp_path / "part", "--datatype 4 --partfs 1 --parttype 1 --partarch 2 --groupid 1"
    with part.open("wb") as file:
        subprocess.run([engine.path, "sif", "dump", "3", make_tiny(engine, tmp_path)], stdout=file, check=True)
    for words in (["add", *of_squashfs.split(), str(own_image), str(part)], ["setprim", "4", str(own_image)]):
        subprocess.run([engine.path, "sif", *words], check=True)
    assert engine.run(own_image, tmp_path, "cat /opt/tool") == "second"
    made.unpack(own_image, tmp_path / "unpacked")
    assert (tmp_path / "unpacked/opt/tool").read_text() == "second"


def test_an_image_with_an_overlay_is_not_unpacked_without_it(engine: Engine, made: Store, own_image: Path) -> None:
    subprocess.run([engine.path, "overlay", "create", "--size", "64", own_image], check=True, capture_output=True)
    with pytest.raises(ContainerError, match=r"or an overlay, .*; set containers\.form to sif"):
        made.obtain(str(own_image), "tool.bet.image")


def test_a_run_verifies_an_image_once_for_all_its_jobs(made: Store, own_image: Path, tmp_path: Path) -> None:
    """Jobs that come later read nothing of it, by the access times of a file in it; a damaged marker says nothing."""
    image = made.obtain(str(own_image), "tool.bet.image")
    (marker,) = (tmp_path / "verified").iterdir()
    placed = made.file(image)
    assert read_json(marker) == {"run": "first", "host": socket.gethostname(), "path": str(placed)}
    file = placed / "opt/tool"
    for run, damaged, reads in (("first", 0, False), ("second", 0, True), ("second", 0, False), ("second", 1, True)):
        if damaged:
            os.truncate(marker, 5)
        os.utime(file, (0, file.stat().st_mtime))
        replace(made, run=run).place(image)
        assert (file.stat().st_atime > 0) == reads


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
    made: Store, own_image: Path
) -> None:
    made = replace(made, verified=None)
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


def test_images_that_nobody_uses_leave_store_and_tier_and_a_file_of_the_users_stays(tmp_path: Path) -> None:
    """Nor does the image of these results leave, or one of which a run has begun since the store was listed.

    Images were used 40 days and one day ago; another is the user's own, and of one the facts are damaged.
    """
    kept, images = tmp_path / "kept", tmp_path / "images"
    for name, sha, days in (("old-11111111", "a" * 64, 40), ("new-22222222", "b" * 64, 1)):
        (images / f"{name[:3]}-{sha[:12]}.sandbox/bin").mkdir(parents=True)
        (kept / f"{name[:3]}-{sha[:12]}.cache").mkdir(parents=True)
        (kept / f"{name}.sif").write_bytes(b"x" * 1000)
        (kept / f"{name}.json").write_text(json.dumps({"sha256": sha, "size_bytes": 1000}))
        os.utime(kept / f"{name}.json", (time.time() - days * 86_400,) * 2)
    file = tmp_path / "own.sif"
    file.write_bytes(b"mine")
    facts = {"sha256": "c" * 64, "size_bytes": 4, "source": str(file)}
    for name, text in (("own-44444444", json.dumps(facts)), ("cut-33333333", '{"sha256"')):
        (kept / f"{name}.json").write_text(text)
        os.utime(kept / f"{name}.json", (0, 0))

    stored = list(stored_images(kept, images))
    assert {image.facts.stem[:3]: image.size_bytes for image in stored} == {"old": 1000, "new": 1000, "own": 0}
    os.utime(kept / "own-44444444.json")
    assert not list(remove_unused(stored, 30, in_use=["a" * 64]))
    assert len(names(kept)) == 8
    os.utime(kept / "own-44444444.json", (0, 0))
    (images / "own-cccccccccccc.sandbox").mkdir()
    unused = remove_unused(list(stored_images(kept, images)), 30, ())
    removed = {image.facts.stem: (image, files) for image, files in unused}
    assert sorted(removed) == ["old-11111111", "own-44444444"]
    assert names(kept) == ["cut-33333333.json", "new-22222222.json", "new-22222222.sif", "new-bbbbbbbbbbbb.cache"]
    assert names(images) == ["new-bbbbbbbbbbbb.sandbox"]
    own, files = removed["own-44444444"]
    assert (own.size_bytes, files) == (4, [own.facts, images / "own-cccccccccccc.sandbox"]), "what was unpacked of it"
    assert file.read_bytes() == b"mine"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small TemplateFlow: a file, a link that stays, and a folder of another name."""
    folder = tmp_path / "source"
    write_text(folder / "tpl-A/tpl-A_T1w.nii.gz", "x" * 1000)
    write_text(folder / "template_description.json", "{}")
    (folder / "tpl-A/latest.nii.gz").symlink_to("tpl-A_T1w.nii.gz")
    return folder


@pytest.fixture
def shelf(tmp_path: Path, said: list[str]) -> Shelf:
    (tmp_path / "images").mkdir()
    return Shelf(tmp_path / "kept", tmp_path / "images", said.append, tmp_path / "verified", "one")


def test_a_cache_is_placed_once_and_again_where_it_was_altered_and_known_by_its_checksums(
    source: Path, shelf: Shelf, said: list[str]
) -> None:
    cache = examine_cache("flow", str(source))
    placed = place_cache(shelf, cache)
    assert checksums(placed) == checksums(source)
    assert os.readlink(placed / "tpl-A/latest.nii.gz") == "tpl-A_T1w.nii.gz"
    assert placed.name == f"flow-{cache.sha256[:12]}.folder"
    two, three = (replace(shelf, run=run) for run in ("two", "three"))
    for again in (shelf, two):
        assert place_cache(again, cache) == placed
    assert len(said) == 1
    (placed / "template_description.json").write_text("[]")
    assert (place_cache(two, cache) / "template_description.json").read_text() == "[]", "this run has compared it"
    assert checksums(place_cache(three, cache)) == checksums(source)
    (placed / "planted").symlink_to("/etc")
    assert checksums(place_cache(shelf, cache)) == checksums(source)
    (source / "template_description.json").chmod(0o600)
    assert examine_cache("flow", str(source)) == cache, "permissions are those of a file system"
    (source / "template_description.json").write_text("[]")
    assert examine_cache("flow", str(source)).sha256 != cache.sha256


def test_a_cache_whose_source_has_changed_or_is_gone_is_refused(source: Path, shelf: Shelf) -> None:
    cache = examine_cache("flow", str(source))
    (source / "more").write_text("more")
    with pytest.raises(SourceError, match=r"^app\.caches\.flow: .*source: has changed since it was looked at; start w"):
        place_cache(shelf, cache)
    source.rename(source.with_name("away"))
    with pytest.raises(SourceError, match="is not there any more"):
        place_cache(shelf, cache)
    assert names(shelf.images) == []


@pytest.mark.parametrize("kind", ["absolute", "upwards", "pipe"])
def test_what_leads_out_of_a_cache_is_refused(source: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(source / "bad")
    else:
        (source / "bad").symlink_to("/etc/passwd" if kind == "absolute" else "../kept")
    with pytest.raises(InputError, match=r"^flow/bad: is a "):
        examine_cache("flow", str(source))


def test_a_copy_that_is_killed_half_way_has_no_name_and_is_made_again(
    source: Path, shelf: Shelf, said: list[str]
) -> None:
    for number in range(3000):  # it takes a moment
        (source / f"{number:04d}").write_bytes(b"x")
    cache = examine_cache("flow", str(source))
    killed = multiprocessing.get_context("fork").Process(target=place_cache, args=(shelf, cache))
    killed.start()
    wait_for(lambda: list(shelf.images.glob(".flow-*.partial/0*")), killed.is_alive)
    killed.kill()
    killed.join()
    assert not list(shelf.images.glob("flow-*"))
    with ThreadPoolExecutor(3) as others:
        jobs = others.map(place_cache, [shelf] * 3, [cache] * 3)
    (placed,) = {*jobs}
    assert len(said) == 1, "others wait for the one that copies"
    assert checksums(placed) == checksums(source)
    assert not list(shelf.images.glob(".*.partial"))
