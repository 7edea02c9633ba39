"""What a build does after another: what runs again, what stays, what is said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from gallery.faulty import HALVES, HEALTHY
from tiny.tiny_site import Build, Snapshot, build, written


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> tuple[Build, Snapshot]:
    """The site, built for the first time."""
    other = HEALTHY.replace("A page", "B page").replace("2.0", "3.0").replace("x == 2", "x == 3")
    files = {
        "examples/basics/one.py": HEALTHY,
        "examples/basics/two.py": other,
        "examples/cuda/needs_a_gpu.py": HALVES.replace("A page", "G page"),
    }
    site = written(tmp_path_factory.mktemp("builds") / "site", files)
    return build(site), Snapshot.of(site)


@pytest.fixture
def folder(built: Build) -> Path:
    return built.site


def ran(output: str) -> set[str]:
    return set(re.findall(r"examples: \d+/\d+ (\S+) [\d.]+ s", output))


def test_of_a_page_that_needs_a_gpu_the_half_that_needs_none_is_run_and_the_rest_says_so(built: Build) -> None:
    assert built.code == 0 and ran(built.output) == {"basics/one", "basics/two", "cuda/needs_a_gpu"}, built.output
    page = BeautifulSoup((built.out / "gallery/cuda/needs_a_gpu.html").read_text(encoding="utf-8"), "html.parser")
    (note,) = page.select(".provenance.not-recorded")
    assert note.get_text(strip=True).startswith(
        "From here on, the outputs are missing: the code needs a GPU, this page was built without one, "
        "and it has not been recorded yet."
    )
    (output,) = page.select(".sphx-glr-script-out")
    assert "tensor(2., requires_grad=True)" in output.get_text() and output in note.find_all_previous()
    assert note.find_parent("section").h2.get_text().startswith("Measured")
    assert "y = x * 21" in note.find_next("pre").get_text()
    assert page.select_one("p.claims").get_text().startswith("One assert ran")


def test_nothing_changed_runs_nothing_and_writes_nothing_and_one_edit_runs_one(built: Build, folder: Path) -> None:
    before = built.times()
    again = build(folder)
    assert again.code == 0 and "examples: 0 run, 3 current, 0 failed" in again.output, again.output
    assert built.times() == before
    script = folder / "examples" / "basics" / "one.py"
    script.write_text(script.read_text(encoding="utf-8").replace("print(x)", "print(x * 10)"), encoding="utf-8")
    again = build(folder)
    assert again.code == 0 and ran(again.output) == {"basics/one"}, again.output
    assert "tensor(20." in (again.out / "gallery" / "basics" / "one.html").read_text(encoding="utf-8")


def test_a_failing_page_is_replaced_named_and_run_again(folder: Path) -> None:
    script = folder / "examples" / "basics" / "one.py"
    good = HEALTHY.replace("print(x)", "print(x * 10)")
    script.write_text(good + "\nraise ValueError('broken on purpose')\n", encoding="utf-8")
    line = len(good.splitlines()) + 2
    for _ in range(2):
        failed = build(folder)
        assert failed.code != 0
        said = rf"1 of the examples failed:\s+examples/basics/one.py:{line}: ValueError"
        assert re.search(said, failed.output)
        html = (failed.out / "gallery" / "basics" / "one.html").read_text(encoding="utf-8")
        assert "This page has no outputs" in html
        assert "tensor(20." not in html
    script.write_text(good, encoding="utf-8")
    mended = build(folder)
    assert mended.code == 0, mended.output
    assert "tensor(20." in (mended.out / "gallery" / "basics" / "one.html").read_text(encoding="utf-8")


SAVES = HEALTHY.replace("A page", "S page")


def test_a_script_saved_while_the_site_is_built_is_not_run_by_sphinx_gallery(tmp_path: Path) -> None:
    """It would run in the process of the build, and the next builds would take its outputs for those of the runner."""
    site = written(tmp_path, {"examples/basics/one.py": HEALTHY, "examples/basics/saves.py": SAVES})
    assert build(site).code == 0
    save = "from pathlib import Path\n\n_one = Path(os.environ['RUNS']).with_name('examples') / 'basics' / 'one.py'\n"
    (site / "examples" / "basics" / "saves.py").write_text(
        f"{SAVES}\n{save}_one.write_text(_one.read_text().replace('print(x)', 'print(x * 10)'))\n"
    )
    refused = build(site)
    assert refused.code != 0 and ran(refused.output) == {"basics/saves"}
    assert "examples/basics/one.py was saved while the site was being built; build it again" in refused.output
    again = build(site)
    assert again.code == 0 and "basics/one" in ran(again.output), again.output
    assert "tensor(20." in (again.out / "gallery" / "basics" / "one.html").read_text(encoding="utf-8")
