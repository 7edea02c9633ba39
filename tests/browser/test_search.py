"""The search answers: questions of people, names, symptoms, and messages with names and shapes of a reader's own."""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from visiting import new_tab

from atlas.search_index import QUESTIONS, read_questions, split_words
from error_pages import all_of, message, with_symptoms
from markup import read
from search import pastes, questions
from sources import ROOT

#: The shares of questions whose best result is right, and with one of the first three, in each half.
FLOORS = {"chosen-on": (0.79, 0.94), "not-looked-at": (0.75, 0.92)}
#: The beginning of a message as a page prints it.
_ERROR = re.compile(r"^\W*(?P<name>(?:\w+\.)*\w*(?:Error|Warning)): ")
FIND = """queries => queries.map(query => {
  const {card, results} = atlasSearch.find(query);
  return [...(card ? [card.page] : []), ...results.map(({page}) => page)].map(page => atlasSearch.pages[page][0]);
})"""


INPUTS = tomllib.loads((ROOT / "tests" / "search" / "inputs.toml").read_text(encoding="utf-8"))
#: 25 KB of a program's output.
LOG = "epoch 3: 14/900 [00:12<01:03, loss=0.51]\n" * 600


@pytest.fixture(scope="module")
def engine(browser: Browser, origin: str) -> Iterator[Page]:
    """A tab in which the index is loaded."""
    with browser.new_context() as context:
        tab = new_tab(context)
        tab.goto(f"{origin}/search.html?q=leaf")
        tab.wait_for_function("window.atlasSearch")
        yield tab


def find(engine: Page, queries: list[str]) -> list[list[str]]:
    """For each question the addresses of the pages that are found, best first."""
    return engine.evaluate(FIND, queries)


@pytest.fixture(scope="module")
def found(engine: Page) -> dict[questions.Question, list[str]]:
    asked = questions.answered()
    return dict(zip(asked, find(engine, [question.query for question in asked]), strict=True))


def share(found: dict[questions.Question, list[str]], *, choosing: bool, first: int) -> float:
    half = [question for question in found if question.is_for_choosing == choosing]
    assert len(half) > 75
    return sum(bool({*found[question][:first]} & {*question.pages}) for question in half) / len(half)


@pytest.mark.parametrize("half", FLOORS)
def test_questions_of_people_find_their_page(found: dict[questions.Question, list[str]], half: str) -> None:
    shares = [share(found, choosing=half == "chosen-on", first=first) for first in (1, 3)]
    print(f"{half}: first {shares[0]:.1%}, among three {shares[1]:.1%}")
    assert [shares[0] >= FLOORS[half][0], shares[1] >= FLOORS[half][1]] == [True, True], shares


def test_a_page_is_found_for_the_questions_that_it_answers(engine: Page) -> None:
    own = [(page, query) for page, asked in read_questions(ROOT / "examples" / QUESTIONS).items() for query in asked]
    answers = find(engine, [query for _page, query in own])
    missed = [query for (page, query), found in zip(own, answers, strict=True) if f"{page}.html" not in found[:3]]
    print(f"{len(own)} questions of pages, {len(missed)} of them not among three")
    assert len(missed) <= 0.02 * len(own), missed


def test_no_question_comes_back_empty(engine: Page, found: dict[questions.Question, list[str]]) -> None:
    queries = [question.query for question in questions.unanswered()]
    assert [query for query, pages in zip(queries, find(engine, queries), strict=True) if not pages] == []
    assert [question.query for question, pages in found.items() if not pages] == []


def test_each_page_that_a_question_names_is_there(site: Path) -> None:
    named = {page for question in questions.answered() for page in question.pages}
    assert [page for page in sorted(named) if not (site / page).is_file()] == []


def pasted(site: Path) -> Iterator[tuple[str, str]]:
    """A page about an error, and its message as another reader has it: a line, with its error, as a whole traceback."""
    for page in all_of(ROOT):
        whole = message(page.title, read(site / page.address))
        line = next(line for line in whole.splitlines() if page.title in line)
        error = _ERROR.match(line)
        name, text = (error["name"], line[error.end() :]) if error else ("RuntimeError", line)
        yield page.address, whole
        yield page.address, " ".join(page.title.split()[:6])
        for seed in range(3):
            chance = random.Random(f"{page.address} {seed}")
            other = pastes.reworded(text, chance)
            yield page.address, other
            yield page.address, f"{name}: {other}"
            yield page.address, pastes.traceback(name, other, chance)
        yield page.address, f"{LOG}{pastes.traceback(name, other, chance)}\n{LOG}{INPUTS['launcher']}"


def test_messages_with_names_and_shapes_of_a_readers_own(engine: Page, site: Path) -> None:
    asked = list(pasted(site))
    answers = find(engine, [query for _page, query in asked])
    wrong = [(page, query) for (page, query), found in zip(asked, answers, strict=True) if found[0] != page]
    assert not wrong


def test_a_symptom(engine: Page) -> None:
    asked = {symptom: page.address for page in with_symptoms(ROOT) for symptom in page.symptoms}
    answers = dict(zip(asked, (found[0] for found in find(engine, list(asked))), strict=True))
    assert answers == asked


def test_inputs_that_once_found_a_wrong_page(engine: Page) -> None:
    answers = zip(INPUTS["input"], find(engine, [one["text"] for one in INPUTS["input"]]), strict=True)
    wanted = [({f"{page}.html" for page in one["pages"]}, one, found) for one, found in answers]
    assert [(one["text"], found) for pages, one, found in wanted if not pages & {*found[: one.get("first", 3)]}] == []


def test_a_term_in_chinese_leads_to_the_glossary(engine: Page) -> None:
    leaf, view, accumulation = find(engine, ["叶子节点", "视图", "梯度累积"])
    assert leaf[0] == view[0] == "reference/glossary.html" in accumulation[1:3]  # its lesson is first


def test_no_card_says_that_a_page_has_a_message_of_another_program(engine: Page) -> None:
    assert engine.evaluate("texts => texts.filter(text => atlasSearch.find(text).card)", INPUTS["others"]) == []


def test_the_browser_has_the_words_that_the_build_has(engine: Page, site: Path) -> None:
    """Two programs make words of a text. Every text of the site must give the same in both."""
    texts = "\n".join(path.read_text(encoding="utf-8") for path in sorted(site.rglob("*.html.md"))).splitlines()
    texts += [
        "x.grad_fn MulBackward0 __call__ fp16 naïve Größe 叶子张量 leaf叶子 _a_ HTMLParser 2x3 can't dropped optimisation"
    ]
    theirs = engine.evaluate("texts => texts.map(text => atlasSearch.words(text).join(' '))", texts)
    ours = [" ".join(split_words(text)) for text in texts]
    assert [pair for pair in zip(texts, ours, theirs, strict=True) if pair[1] != pair[2]] == []
