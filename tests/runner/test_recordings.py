"""A recording is used only if script, outputs and manifest fit together. Recordings made on the CPU stand in here."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from atlas.runner.halves import MARK
from atlas.runner.model import Page
from atlas.runner.outputs import fingerprint, recordings
from atlas.runner.outputs.cache import sha256
from atlas.runner.scripts import ScriptError
from runner.faulty import HALVES, HEALTHY

FACTS = {"gpu": "Test GPU", "date": "2026-01-31", "versions": {"torch": "2.13.0"}}


@pytest.fixture
def page(tmp_path: Path) -> Page:
    script = tmp_path / "examples" / "cuda" / "page.py"
    script.parent.mkdir(parents=True)
    script.write_text(HALVES)
    return Page(script, tmp_path / "docs" / "gallery" / "cuda")


@pytest.fixture
def recorded(page: Page, run: Callable) -> Page:
    outcome = run({"page": HALVES})["page"]
    recordings.write(page, outcome.job.place.made, recordings.folder_of(page), FACTS)
    return page


@pytest.fixture
def replayed(page: Page, run: Callable) -> Callable[[], str]:
    """Run the first half of the page as a build without a GPU does, add the recording that is there, and return the page."""

    def replay() -> str:
        end = page.script.read_text().splitlines().index(f"# {MARK}") + 1
        made = run({"page": page.script.read_text()}, end=end)["page"].job.place.made
        recordings.replay(page, recordings.look(page), made)
        page.cache.mkdir(parents=True, exist_ok=True)
        shutil.copytree(made, page.cache, dirs_exist_ok=True)
        return (made / "page.rst").read_text()

    return replay


def outputs_of(page: Page, made: Path) -> Path:
    """What a run of the recorded page left: its outputs, and the copy of the script that ran."""
    shutil.copytree(recordings.folder_of(page), made, ignore=shutil.ignore_patterns(recordings.MANIFEST))
    shutil.copyfile(page.script, made / page.script.name)
    return made


def edit_manifest(page: Page, change: Callable[[dict], object]) -> None:
    path = recordings.folder_of(page) / recordings.MANIFEST
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def test_a_page_without_a_recording(page: Page) -> None:
    assert recordings.look(page).fault == "it has not been recorded yet"


def test_a_page_that_is_not_recorded_depends_on_what_its_first_half_runs_with(
    page: Page, settings: dict[str, Any]
) -> None:
    of_page = fingerprint.of(page.script, recordings.look(page).depends_on(fingerprint.shared(settings)))
    assert {"the script", "the recording", "the site's code in conf", "torch"} <= set(of_page)


def test_a_replayed_page_depends_on_both_its_halves(recorded: Page) -> None:
    """On the recording, and on the versions that the first half runs with in this build."""
    of_page = fingerprint.of(recorded.script, recordings.look(recorded).depends_on({"torch": "2.13.0"}))
    manifest = recordings.folder_of(recorded) / recordings.MANIFEST
    assert of_page == {"the script": sha256(recorded.script), "the recording": sha256(manifest), "torch": "2.13.0"}


def test_only_a_page_with_the_mark_needs_a_recording(page: Page) -> None:
    assert recordings.needed(page.script)
    page.script.write_text(HEALTHY)
    assert not recordings.needed(page.script)


def test_a_recording_that_fits(recorded: Page) -> None:
    found = recordings.look(recorded)
    assert found.fault == ""
    assert "page.rst" in found.manifest["outputs"]


def test_an_edited_script(recorded: Page) -> None:
    recorded.script.write_text(HALVES + "\n# changed\n")
    assert recordings.look(recorded).fault == "its code has changed since it was recorded"


def test_a_script_that_is_edited_while_it_runs_is_not_what_was_recorded(run: Callable, page: Page) -> None:
    """A recording is of the bytes that ran."""
    made = run({"page": HALVES})["page"].job.place.made
    page.script.write_text(HALVES + "# edited while it ran\n")
    recordings.write(page, made, recordings.folder_of(page), FACTS)
    assert recordings.look(page).fault == "its code has changed since it was recorded"
    page.script.write_text(HALVES)
    assert recordings.look(page).fault == ""


def test_a_script_that_is_edited_after_it_was_looked_at_is_not_replayed(recorded: Page, run: Callable) -> None:
    """The halves must be of one script: what ran here is not what was recorded."""
    found = recordings.look(recorded)
    made = run({"page": HALVES + "\n# changed\n"})["page"].job.place.made
    with pytest.raises(ScriptError, match=r"cuda/page\.py was saved while the site was being built; build it again"):
        recordings.replay(recorded, found, made)


def test_a_recording_of_another_format_is_refused(recorded: Page) -> None:
    edit_manifest(recorded, lambda manifest: manifest.update(format=recordings.FORMAT + 1))
    assert recordings.look(recorded).fault == (
        f"its recording is in format {recordings.FORMAT + 1}, and this code reads format {recordings.FORMAT}"
    )


def test_a_recording_from_before_formats_is_refused(recorded: Page) -> None:
    edit_manifest(recorded, lambda manifest: manifest.pop("format"))
    assert recordings.look(recorded).fault == "its manifest.json does not say 'format'"


DRAWN = f"{HALVES}\n# %%\n# A graph.\n\nz = x * x\nz.backward()\n# graph: z -- One node, and both of its edges lead to x\n"


def test_a_graph_of_older_code_is_refused_by_name(run: Callable, page: Page) -> None:
    """What draws it needs its fields; it must not end the build with a KeyError."""
    page.script.write_text(DRAWN)
    recordings.write(page, run({"page": DRAWN})["page"].job.place.made, recordings.folder_of(page), FACTS)
    assert recordings.look(page).fault == ""
    graph = recordings.folder_of(page) / "images" / "sphx_glr_page_002.graph.json"
    graph.write_text(graph.read_text().replace('"edges"', '"once_called_so"'))
    name = f"images/{graph.name}"
    edit_manifest(page, lambda manifest: manifest["outputs"].update({name: sha256(graph)}))
    assert recordings.look(page).fault == f"its recorded {name} is of other code than this: 'edges'"


def test_a_touched_output(recorded: Page) -> None:
    (recordings.folder_of(recorded) / "page.rst").write_text("made up")
    assert recordings.look(recorded).fault == "its recorded page.rst is not what was recorded"


def test_a_missing_output(recorded: Page) -> None:
    (recordings.folder_of(recorded) / "page.rst").unlink()
    assert recordings.look(recorded).fault == "its recorded page.rst is missing"


def test_an_added_output(recorded: Page) -> None:
    (recordings.folder_of(recorded) / "more.png").write_text("x")
    assert "does not list" in recordings.look(recorded).fault


def test_a_missing_manifest(recorded: Page) -> None:
    (recordings.folder_of(recorded) / recordings.MANIFEST).unlink()
    assert recordings.look(recorded).fault == "its recording has no manifest.json"


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"outputs": 3}'])
def test_a_manifest_that_is_not_one(recorded: Page, text: str) -> None:
    (recordings.folder_of(recorded) / recordings.MANIFEST).write_text(text)
    assert "manifest.json" in recordings.look(recorded).fault


@pytest.mark.parametrize("name", ["script", "code", "outputs", "gpu", "date", "versions"])
def test_a_manifest_that_lacks_something(recorded: Page, name: str) -> None:
    edit_manifest(recorded, lambda manifest: manifest.pop(name))
    assert recordings.look(recorded).fault == f"its manifest.json does not say '{name}'"


def test_a_replayed_page_says_where_its_second_half_was_made(recorded: Page, replayed: Callable[[], str]) -> None:
    note = ".. recorded::\n   :gpu: Test GPU\n   :date: 2026-01-31\n   :torch: 2.13.0\n"
    on_paper, _, measured = replayed().partition(note)
    assert "tensor(2., requires_grad=True)" in on_paper and "tensor(42., grad_fn=<MulBackward0>)" not in on_paper
    assert "tensor(42., grad_fn=<MulBackward0>)" in measured and MARK not in on_paper + measured
    assert (recorded.cache / "page.py.md5").is_file(), "sphinx-gallery must not run it"


def test_the_first_half_is_of_this_build_and_the_second_is_recorded(
    recorded: Page, replayed: Callable[[], str]
) -> None:
    """A number of the first half is what this build computed, even where the recording says something else."""
    rst = recordings.folder_of(recorded) / "page.rst"
    for old, new in (("tensor(2., requires", "tensor(2000., requires"), ("tensor(42., grad", "tensor(4200., grad")):
        text = rst.read_text()
        assert text.count(old) == 1
        rst.write_text(text.replace(old, new))
    edit_manifest(recorded, lambda manifest: manifest["outputs"].update({"page.rst": sha256(rst)}))
    text = replayed()
    assert "tensor(2., requires" in text and "tensor(2000., requires" not in text
    assert "tensor(4200., grad" in text and "tensor(42., grad" not in text


EDITED = HALVES.replace("# Below.\n", "# Said in other words.\n")


def test_the_text_may_be_edited_and_keeps_the_outputs(recorded: Page, replayed: Callable[[], str]) -> None:
    """A sentence can be mended without a GPU; the page says that its outputs are older than its text."""
    assert ":edited:" not in replayed()
    assert EDITED != HALVES
    recorded.script.write_text(EDITED)
    assert recordings.look(recorded).fault == ""
    text = replayed()
    assert "Said in other words." in text and "Below." not in text and ":edited:" in text
    assert text.count("tensor(42., grad_fn=<MulBackward0>)") == 1 and text.count("y = x * 21") == 1
    assert text.index("y = x * 21") < text.index("tensor(42., grad")


def test_a_mark_at_another_place_is_no_edit_of_the_text(recorded: Page) -> None:
    """Then another part of the code is recorded."""
    mark = f"#\n# {MARK}\n"
    assert HALVES.count(mark) == 1
    recorded.script.write_text(HALVES.replace(mark, "") + f"\n# %%\n# Last.\n{mark}")
    assert recordings.look(recorded).fault == "its code has changed since it was recorded"


def test_a_replayed_page_counts_the_checks_of_both_halves_once(recorded: Page, replayed: Callable[[], str]) -> None:
    assert re.findall(r"^\.\. claims:: .*", replayed(), re.MULTILINE) == [".. claims:: 2 0 0 1"]


def test_the_drawings_of_the_second_half_are_replayed(recorded: Page, replayed: Callable[[], str]) -> None:
    (named,) = re.findall(r"images/(sphx_glr_page_\d+\.svg)", replayed())
    there = recordings.folder_of(recorded) / "images" / named
    assert (recorded.cache / "images" / named).read_bytes() == there.read_bytes()


@pytest.mark.parametrize("spoiled", ["not recorded", "another script", "touched"])
def test_without_a_recording_that_fits_nothing_of_the_second_half_is_shown(
    recorded: Page, replayed: Callable[[], str], spoiled: str
) -> None:
    """Its code is; and the page says why, at the place where the outputs would begin."""
    folder = recordings.folder_of(recorded)
    if spoiled == "not recorded":
        shutil.rmtree(folder)
    elif spoiled == "another script":
        recorded.script.write_text(HALVES + "# changed\n")
    else:
        (folder / "page.rst").write_text("made up")
    why = recordings.look(recorded).fault
    on_paper, _, measured = replayed().partition(f".. not-recorded:: {why}\n")
    assert why and "tensor(2., requires_grad=True)" in on_paper
    assert re.findall(r"^\.\. claims:: .*", on_paper, re.MULTILINE) == [".. claims:: 1 0 0"]
    assert "y = x * 21" in measured and "42" not in measured.replace("assert y == 42", "")
    assert "graph-figure" not in measured and not list(recorded.cache.glob("images/sphx_glr_page_0*"))


def test_a_recording_without_its_page(recorded: Page) -> None:
    (recordings.folder_of(recorded) / "page.rst").unlink()
    edit_manifest(recorded, lambda manifest: manifest["outputs"].pop("page.rst"))
    assert recordings.look(recorded).fault == "its recorded page.rst is missing"


# -- Taking the place of an older one ---------------------------------------------------------------

VARIES = f"{HEALTHY}\n# %%\n# Text.\n\n# varies: The number of the process.\n\nprint(os.getpid())\n"
LATER = {**FACTS, "date": "2026-02-28", "seconds": 9.0, "peak_memory": 5}


@pytest.fixture
def again(run: Callable, page: Page) -> Callable[..., tuple[bool, dict[str, Any]]]:
    """Run a script and record it; return whether that gave a new recording, and what is now there."""

    def record(script: str, facts: dict[str, Any]) -> tuple[bool, dict[str, Any]]:
        page.script.write_text(script)
        made = run({"page": script})["page"].job.place.made
        new = recordings.write(page, made, recordings.folder_of(page), facts)
        found = recordings.look(page)
        assert found.fault == ""
        return new, dict(found.manifest)

    return record


def test_a_recording_that_says_the_same_stays(again: Callable) -> None:
    """So a weekly run proposes nothing where nothing is new."""
    assert again(VARIES, FACTS)[0]
    new, there = again(VARIES, LATER)
    assert not new
    assert there["date"] == FACTS["date"]


@pytest.mark.parametrize(
    ("script", "facts"),
    [
        (VARIES + "\n# edited\n", LATER),
        (VARIES, {**LATER, "gpu": "Other GPU"}),
        (VARIES, {**LATER, "versions": {"torch": "2.14.0"}}),
    ],
    ids=["script", "gpu", "torch"],
)
def test_a_recording_that_says_something_else_is_replaced(again: Callable, script: str, facts: dict) -> None:
    again(VARIES, FACTS)
    new, there = again(script, facts)
    assert new
    assert there["date"] == LATER["date"]


def test_an_output_that_should_not_differ_is_recorded_anew(again: Callable) -> None:
    undeclared = VARIES.replace("# varies: The number of the process.\n", "")
    assert again(undeclared, FACTS)[0]
    assert again(undeclared, LATER)[0]


PLOT = "\n# %%\n# A plot.\n\n{}figure, axes = plt.subplots()\naxes.set_title('A line')\n# figure: A line\n"
PLOTS = f"{HEALTHY}\nimport matplotlib.pyplot as plt\n{PLOT.format('# varies: Why.' + chr(10) * 2)}{PLOT.format('')}"


def test_the_drawing_of_a_cell_that_varies_may_differ(page: Page, run: Callable) -> None:
    """The drawing, and the card that shows it; no other. Cells and names are as sphinx-gallery itself writes them."""
    page.script.write_text(PLOTS)
    made, folder = run({"page": PLOTS})["page"].job.place.made, recordings.folder_of(page)
    names = ["images/sphx_glr_page_001.svg", "images/sphx_glr_page_002.svg", "images/thumb/sphx_glr_page_thumb.svg"]
    assert sorted(path.relative_to(made).as_posix() for path in made.rglob("*.svg")) == names
    assert recordings.write(page, made, folder, FACTS)
    for name, counts in zip(names, (False, True, False), strict=True):
        (made / name).write_text("another drawing")
        assert recordings.write(page, made, folder, LATER) is counts, name


def test_the_text_of_a_cell_counts_unless_it_varies(page: Page, run: Callable) -> None:
    page.script.write_text(PLOTS)
    made, folder = run({"page": PLOTS})["page"].job.place.made, recordings.folder_of(page)
    assert recordings.write(page, made, folder, FACTS)
    rst = made / "page.rst"
    text = rst.read_text()
    rst.unlink()  # sphinx-gallery writes it read-only
    for old, counts in (("   Why.\n", False), ("A plot.", True)):
        assert old in text
        rst.write_text(text.replace(old, "Something else."))
        assert recordings.write(page, made, folder, LATER) is counts, old


def test_a_kill_loses_no_recording(recorded: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is moved or removed last: the old outputs are there, or the new ones."""
    made = outputs_of(recorded, tmp_path / "made")
    for killed_at in count(1):
        folder = tmp_path / str(killed_at) / "page"
        shutil.copytree(recordings.folder_of(recorded), folder)
        steps = []
        with monkeypatch.context() as killing:
            for owner, name in ((shutil, "rmtree"), (shutil, "copyfile"), (os, "replace"), (Path, "rename")):
                real = getattr(owner, name)

                def step(*arguments: Any, real=real, steps=steps, killed_at=killed_at, **options: Any) -> Any:
                    steps.append(arguments)
                    if len(steps) == killed_at:
                        raise KeyboardInterrupt
                    return real(*arguments, **options)

                killing.setattr(owner, name, step)
            try:
                recordings.write(recorded, made, folder, {**LATER, "gpu": "Other GPU"})
                break
            except KeyboardInterrupt:
                pass
        whole = [path.parent for path in folder.parent.rglob(recordings.MANIFEST)]
        assert any(recordings.look(recorded, one).fault == "" for one in whole), f"killed at step {killed_at}"
    assert killed_at > len(list(made.rglob("*.*"))), "it must have come to each file at least"


def test_a_folder_that_is_no_recording_is_not_replaced(page: Page, tmp_path: Path) -> None:
    notes = tmp_path / "out" / "page" / "notes.txt"
    notes.parent.mkdir(parents=True)
    notes.write_text("mine")
    with pytest.raises(FileExistsError, match="it is no recording"):
        recordings.write(page, tmp_path / "made", notes.parent, FACTS)
    assert [path.name for path in notes.parent.parent.rglob("*") if path.is_file()] == ["notes.txt"]
