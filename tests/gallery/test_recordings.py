"""A recording is used only if script, outputs and manifest fit together. Recordings made on the CPU stand in here."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from atlas.gallery.cache import compute_key
from atlas.gallery.recordings import FORMAT, MANIFEST, OUTPUTS, read_recording, replay_recording, write_recording
from atlas.gallery.scripts import MARK, Page, ScriptError
from gallery.faulty import HALVES

FACTS = {"gpu": "Test GPU", "date": "2026-01-31", "versions": {"torch": "2.13.0"}}


@pytest.fixture
def page(tmp_path: Path) -> Page:
    script = tmp_path / "examples" / "cuda" / "page.py"
    script.parent.mkdir(parents=True)
    script.write_text(HALVES, encoding="utf-8")
    return Page(script, tmp_path / "docs" / "gallery" / "cuda")


@pytest.fixture(scope="module")
def made(run: Callable) -> Path:
    """What a run of the whole page makes."""
    return run({"page": HALVES})["page"].job.made


@pytest.fixture
def recorded(page: Page, made: Path) -> Page:
    write_recording(page, made, FACTS)
    return page


@pytest.fixture
def replayed(page: Page, run: Callable) -> Callable[[], str]:
    """Run the first half of the page as a build without a GPU does, add the recording that is there, and return the page."""

    def replay() -> str:
        text = page.script.read_text(encoding="utf-8")
        made = run({"page": text}, end=text.splitlines().index(f"# {MARK}") + 1)["page"].job.made
        replay_recording(page, read_recording(page), made)
        shutil.copytree(made, page.cache, dirs_exist_ok=True)
        return (made / "page.rst").read_text(encoding="utf-8")

    return replay


def edit_manifest(page: Page, change: Callable[[dict], object]) -> None:
    path = page.recording / MANIFEST
    manifest = json.loads(path.read_text(encoding="utf-8"))
    change(manifest)
    path.write_text(json.dumps(manifest), encoding="utf-8")


def test_a_recording_holds_what_a_build_without_a_gpu_cannot_make(recorded: Page) -> None:
    """The outputs and images of the second half; not the page, its text, its notebook or what the first half drew."""
    folder = recorded.recording
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert files == {MANIFEST, OUTPUTS, "images/sphx_glr_page_001.graph.json"}
    outputs = (folder / OUTPUTS).read_text(encoding="utf-8")
    assert "tensor(42., grad_fn=<MulBackward0>)" in outputs and ".. graph-figure:: " in outputs
    for other in ("tensor(2., requires_grad", "Below.", "y = x * 21", "sphx-glr-footer", "sphx-glr-timing"):
        assert other not in outputs


def test_a_replayed_page_depends_on_script_recording_and_what_the_first_half_runs_with(recorded: Page) -> None:
    def key(fingerprint: str = "now") -> dict[str, str]:
        return compute_key(recorded, fingerprint, read_recording(recorded).identify())

    first = key()
    assert key() == first != key("other torch")
    edit_manifest(recorded, lambda manifest: manifest.update(date="2026-02-28"))
    again = key()
    assert again != first
    recorded.script.write_text(f"{HALVES}\n# %%\n# More text.\n", encoding="utf-8")
    assert key() not in (first, again)


def edit_code(page: Page) -> None:
    page.script.write_text(HALVES + "\n# changed\n", encoding="utf-8")


def move_mark(page: Page) -> None:
    """Then another part of the code is recorded."""
    mark = f"#\n# {MARK}\n"
    assert HALVES.count(mark) == 1
    page.script.write_text(HALVES.replace(mark, "") + f"\n# %%\n# Last.\n{mark}", encoding="utf-8")


CODE = "its code has changed since it was recorded"
SPOILED: dict[str, tuple[Callable[[Page], object], str]] = {
    "not recorded": (lambda page: shutil.rmtree(page.recording), "it has not been recorded yet"),
    "edited code": (edit_code, CODE),
    "a mark at another place": (move_mark, CODE),
    "another format": (
        lambda page: edit_manifest(page, lambda manifest: manifest.update(format=0)),
        f"its recording is in format 0, and this code reads {FORMAT}",
    ),
    "a touched output": (
        lambda page: (page.recording / OUTPUTS).write_text("made up", encoding="utf-8"),
        f"its recorded {OUTPUTS} is not what was recorded",
    ),
    "a missing output": (lambda page: (page.recording / OUTPUTS).unlink(), f"its recorded {OUTPUTS} is missing"),
    "an added output": (
        lambda page: (page.recording / "more.png").write_text("x", encoding="utf-8"),
        "its recorded more.png is not what was recorded",
    ),
}


@pytest.mark.parametrize("how", SPOILED)
def test_a_recording_that_does_not_fit(recorded: Page, how: str) -> None:
    assert read_recording(recorded).fault == ""
    spoil, fault = SPOILED[how]
    spoil(recorded)
    assert read_recording(recorded).fault == fault


def test_a_script_that_is_edited_after_it_was_looked_at_is_not_replayed(recorded: Page, run: Callable) -> None:
    """The halves must be of one script: what ran here is not what was recorded."""
    found = read_recording(recorded)
    made = run({"page": HALVES + "\n# changed\n"})["page"].job.made
    with pytest.raises(ScriptError, match=r"cuda/page\.py was saved while the site was being built; build it again"):
        replay_recording(recorded, found, made)


@pytest.mark.parametrize("name", ["", "format", "code", "outputs", "gpu", "date", "versions"])
def test_a_manifest_that_is_not_one_or_lacks_something(recorded: Page, name: str) -> None:
    if name:
        edit_manifest(recorded, lambda manifest: manifest.pop(name))
    else:
        (recorded.recording / MANIFEST).write_text("[]", encoding="utf-8")
    said = f"its manifest.json cannot be read ({f'KeyError: {name!r}' if name else 'TypeError: '}"
    assert said in read_recording(recorded).fault


def test_a_replayed_page_says_where_its_second_half_was_made(recorded: Page, replayed: Callable[[], str]) -> None:
    said = "on an Test GPU with PyTorch 2.13.0 on 2026-01-31, with this script."
    on_paper, note, measured = replayed().replace("\\", "").partition(said)
    assert note and ".. container:: provenance recorded\n" in on_paper
    assert "tensor(2., requires_grad=True)" in on_paper and "tensor(42., grad_fn=<MulBackward0>)" not in on_paper
    assert "tensor(42., grad_fn=<MulBackward0>)" in measured and MARK not in on_paper + measured
    assert (recorded.cache / "page.py.md5").is_file(), "sphinx-gallery must not run it"
    assert re.findall(r"^\.\. claims:: .*", on_paper + measured, re.MULTILINE) == [".. claims:: 2 0 0 1"]
    (named,) = re.findall(r"images/(sphx_glr_page_\d+\.graph\.json)", measured)
    there = recorded.recording / "images" / named
    assert (recorded.cache / "images" / named).read_bytes() == there.read_bytes()


EDITED = HALVES.replace("# Below.\n", "# Said in other words.\n")


def test_the_text_may_be_edited_and_keeps_the_outputs(recorded: Page, replayed: Callable[[], str]) -> None:
    """A sentence can be mended without a GPU; the page says that its outputs are older than its text."""
    assert "edited later" not in replayed()
    assert EDITED != HALVES
    recorded.script.write_text(EDITED, encoding="utf-8")
    assert read_recording(recorded).fault == ""
    text = replayed()
    assert "Said in other words." in text and "Below." not in text and "edited later" in text
    assert text.count("tensor(42., grad_fn=<MulBackward0>)") == 1 and text.count("y = x * 21") == 1
    assert text.index("y = x * 21") < text.index("tensor(42., grad")


@pytest.mark.parametrize("how", ["not recorded", "edited code", "a touched output"])
def test_without_a_recording_that_fits_nothing_of_the_second_half_is_shown(
    recorded: Page, replayed: Callable[[], str], how: str
) -> None:
    """Its code is; and the page says why, at the place where the outputs would begin."""
    SPOILED[how][0](recorded)
    why = read_recording(recorded).fault
    on_paper, _, measured = replayed().replace("\\", "").partition(f"built without one, and {why}.")
    assert why and "tensor(2., requires_grad=True)" in on_paper
    assert re.findall(r"^\.\. claims:: .*", on_paper, re.MULTILINE) == [".. claims:: 1 0 0"]
    assert "y = x * 21" in measured and "42" not in measured.replace("assert y == 42", "")
    assert "graph-figure" not in measured and not list(recorded.cache.glob("images/sphx_glr_page_0*"))
