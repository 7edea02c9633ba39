"""The page on the parts of PyTorch names each part that older notes list, with its state today and an example that runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from markup import read, text_of

STATES = ("current", "beta", "prototype", "in maintenance", "deprecated", "moved", "removed")

#: Of a doctest, and of a cell that ran when the page was built.
OUTPUTS = ".highlight-pycon .go, .highlight-pycon .gt, .cell_output pre"

#: One a comma.
LISTED = re.split(
    r",\s+",
    """Tensor views, torch.Storage, Complex numbers, torch.sparse, torch.nested, torch.linalg, torch.fft,
torch.random, torch.overrides, torch.autograd, torch.utils.checkpoint, torch.amp, torch.nn.init, torch.optim,
torch.utils.data, torch.distributions, torch.hub, Quantization, torch.fx, torch.jit, torch.onnx, torch.package,
torch.utils.cpp_extension, torch.cuda, torch.backends, torch.distributed, Named tensors, torch.masked,
torch.special, torch.utils.dlpack, torch.nn.attention, torch.utils.model_zoo, torch.utils.mobile_optimizer,
torch.accelerator, torch.mps, torch.xpu, Tensor.pin_memory, torch.multiprocessing, DTensor and FSDP2,
torch.distributed.pipelining, torch.utils.tensorboard, torch.testing, torch.distributed.rpc, torch.futures,
torch.profiler, torch.utils.benchmark, torch.utils.bottleneck""",
)


@pytest.fixture(scope="module")
def parts(site: Path) -> BeautifulSoup:
    return read(site / "reference" / "parts-of-torch.html")


def incomplete(page: BeautifulSoup) -> list[str]:
    """The parts that lack a state at their beginning, or an example with its output, by title."""
    return [
        text_of(part.h3)
        for part in page.select("#the-parts-of-pytorch section section")
        if not text_of(part.select_one("p > em:first-child") or page.new_tag("em")).lower().startswith(STATES)
        or not part.select(OUTPUTS)
    ]


def test_every_part_is_there(parts: BeautifulSoup) -> None:
    titles = [text_of(title) for title in parts.select("#the-parts-of-pytorch section section h3")]
    assert set(LISTED) <= set(titles)


def test_every_part_has_a_state_and_an_example(parts: BeautifulSoup) -> None:
    assert not incomplete(parts)


def test_what_old_notes_name_leads_to_a_part(parts: BeautifulSoup) -> None:
    table = parts.select_one("#the-parts-of-pytorch > table, #the-parts-of-pytorch > .table-wrapper table")
    rows = table.select("tbody tr")
    assert len(rows) >= 10
    anchors = {part["id"] for part in parts.select("#the-parts-of-pytorch section section")}
    for row in rows:
        links = [link["href"] for link in row.select("a")]
        assert links
        assert {link.removeprefix("#") for link in links} <= anchors


def test_the_operator_in_c_plus_plus_was_compiled_or_the_page_says_why_not(parts: BeautifulSoup) -> None:
    output = text_of(parts.select_one("#torch-utils-cpp-extension .cell_output"))
    right = ["compiled: tensor([2., 4.])", "no backward registered: tensor(1.)", "with a backward: tensor(2.)"]
    assert output.startswith("not compiled, since there is no") or all(line in output for line in right)
