"""Target ``check``: a table of the tiers at every start, and a line for each that a run would miss."""

from __future__ import annotations

from support import Project


def test_check(project: Project) -> None:
    gone = {"gone": project.folder / "nowhere"}
    ended = project.succeeds("check", cores=0, tiers=gone)
    (head,) = ended.lines("tier   in use")
    assert head.split() == ["tier", "in", "use", "kind", "there", "writable", "shared", "room", "path"]
    ended.says("gone   no ")

    ended = project.fails("check", tiers=gone, placement={"work": "gone"})
    (line,) = ended.lines("neurotier: tier 'gone': ")
    path = f"its path {project.folder}/nowhere"
    assert f"{path} is not an existing folder, or may not be entered; mount it, or correct tiers.gone.path" in line
    (table,) = (project.results / "check").glob("*.tsv")
    rows = project.table(f"check/{table.name}")
    assert [row["tier"] for row in rows if row["in_use"] == "true" and row["problem"] != "n/a"] == ["gone"]

    (project.folder / "nowhere").mkdir()
    project.succeeds("check", tiers=gone, placement={"work": "gone"})  # what was found before is not believed
    assert not list(project.folder.glob("neurotier-*/*"))
    assert not list((project.folder / "nowhere").iterdir())
