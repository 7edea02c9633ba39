"""``nox -s newest`` finds a page whose sentence its output contradicts, and a page that fails."""

from __future__ import annotations

from pathlib import Path

import pytest

import newest

PAGE = """<article><h1>Clamp</h1><p>At the bound the gradient is {sentence}.</p>
<div class="sphx-glr-script-out"><pre>gradient: {output}</pre></div><div class="varies"><pre>{time} s</pre></div>
<p>So the weight moves.</p></article>"""


@pytest.fixture
def compare(tmp_path: Path):
    def build_and_compare(output: str, sentence: str = "1", complaints: str = "") -> tuple[str, bool]:
        sites = [tmp_path / name for name in ("pinned", "newest")]
        for site, made in zip(sites, ("1", output), strict=True):
            site.mkdir()
            (site / "clamp.html").write_text(PAGE.format(sentence=sentence, output=made, time=f"{site.name}: 3"))
        return newest.write_report(*sites, complaints)

    return build_and_compare


def test_an_output_that_no_sentence_tells_is_shown_between_its_sentences(compare) -> None:
    report, is_right = compare("0")
    assert not is_right and "Differences that no sentence tells: 1" in report
    shown = "> At the bound the gradient is 1.\n```diff\n- gradient: 1\n+ gradient: 0\n```\n> So the weight moves."
    assert shown in report


def test_an_output_whose_section_names_the_release_is_told(compare) -> None:
    report, is_right = compare("0", sentence="1 up to PyTorch 2.13, and 0 from 2.14 on")
    assert is_right and "Differences in sections that name a release: 1" in report


def test_times_are_no_difference_and_numbers_no_release(compare) -> None:
    report, is_right = compare("1", sentence="2.5 times 2.75 %")
    assert is_right and "+ " not in report and "Sentences that name a release: 0" in report


def test_what_sphinx_complains_of_is_a_failure(compare) -> None:
    report, is_right = compare("1", complaints="clamp.py:3: ERROR: the example raises")
    assert not is_right and "clamp.py:3: ERROR" in report
