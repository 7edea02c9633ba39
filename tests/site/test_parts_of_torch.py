"""The page on the parts of PyTorch names each part that older notes list, with its state today and an example that runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from markup import read, text_of

STATES = ("current", "beta", "prototype", "in maintenance", "deprecated", "moved", "removed")

LISTED = [
    *[
        "Tensor views",
        "torch.Storage",
        "Complex numbers",
        "torch.sparse",
        "torch.nested",
        "torch.linalg",
        "torch.fft",
    ],
    *["torch.random", "torch.overrides", "torch.autograd", "torch.utils.checkpoint", "torch.amp", "torch.nn.init"],
    *["torch.optim", "torch.utils.data", "torch.distributions", "torch.hub", "Quantization", "torch.fx", "torch.jit"],
    *[
        "torch.onnx",
        "torch.package",
        "torch.utils.cpp_extension",
        "torch.cuda",
        "torch.backends",
        "torch.distributed",
    ],
    *["torch.distributed.rpc", "torch.futures", "torch.profiler", "torch.utils.benchmark", "torch.utils.bottleneck"],
]


@pytest.fixture(scope="module")
def parts(site: Path) -> BeautifulSoup:
    return read(site / "reference" / "parts-of-torch.html")


def incomplete(page: BeautifulSoup) -> list[str]:
    """The parts that lack a state at their beginning, or an example with its output, by title."""
    return [
        text_of(part.h3)
        for part in page.select("#the-parts-of-pytorch section section")
        if not text_of(part.select_one("p > em:first-child") or page.new_tag("em")).lower().startswith(STATES)
        or not part.select(".highlight-pycon .go, .highlight-pycon .gt")
    ]


def test_every_part_is_there(parts: BeautifulSoup) -> None:
    titles = [text_of(title) for title in parts.select("#the-parts-of-pytorch section section h3")]
    assert set(LISTED) <= set(titles)


def test_every_part_has_a_state_and_an_example(parts: BeautifulSoup) -> None:
    assert not incomplete(parts)


@pytest.mark.parametrize("lost", ["p > em", ".highlight-pycon"])
def test_an_incomplete_part_is_found(parts: BeautifulSoup, lost: str) -> None:
    page = BeautifulSoup(str(parts), "html.parser")
    part = page.select("#the-parts-of-pytorch section section")[5]
    part.select_one(lost).decompose()
    assert incomplete(page) == [text_of(part.h3)]
