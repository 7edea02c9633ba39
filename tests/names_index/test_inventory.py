"""The inventory of PyTorch's reference: of the PyTorch that the site is built with, sorted, and refreshed by a command."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from atlas.names_index import inventory, refresh
from atlas.names_index.inventory import FILE, Inventory

HEAD = b"# Sphinx inventory version 2\n# Project: PyTorch\n# Version: 2\n# The rest is compressed using zlib.\n"
LISTED = """\
torch.exp py:function 1 generated/torch.exp.html#$ -
torch.autograd.grad_mode.inference_mode py:class 1 generated/torch.autograd.grad_mode.inference_mode.html#$ -
torch.amp.GradScaler.step py:method 1 amp.html#$ -
torch.dtype py:class 1 tensor_attributes.html#$ -
torch.sin std:label 1 notes.html#$ -
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A built list of names, an inventory of PyTorch's, and ours as it was."""
    names = ("exp", "sin", "inference_mode", "GradScaler.step", "float32", "relu")
    page = "".join(f'<dt id="name-torch.{name}">x</dt>' for name in names)
    (tmp_path / "names.html").write_text(page, encoding="utf-8")
    (tmp_path / "objects.inv").write_bytes(HEAD + zlib.compress(LISTED.encode()))
    before = {"torch.exp": "old.html#torch.exp", "torch.relu": "old.html", "torch.cos": "old.html"}
    inventory.save(Inventory("2.0", "2023-03-15", "somewhere", before), tmp_path / "inventory.txt")
    return tmp_path


def run(site: Path, *more: str) -> int:
    options = ["--inventory", site / "objects.inv", "--names", site / "names.html", "--out", site / "inventory.txt"]
    return refresh.main([*map(str, options), *more])


def test_it_is_of_the_pytorch_that_the_site_is_built_with() -> None:
    assert inventory.load().release == refresh.installed_release(), "run: nox -s reference"


def test_it_is_as_the_command_writes_it(tmp_path: Path) -> None:
    inventory.save(inventory.load(), tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_text() == FILE.read_text()
    assert len(inventory.load().places) > 500


def test_a_refresh_tells_what_changed(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(site) == 0
    summary, *lines = capsys.readouterr().out.splitlines()
    assert (
        summary == "4 of 6 names are links: 3 new, 1 moved, 1 gone from the reference, 1 no longer used by the site"
    )
    assert "gone: torch.relu, which was at old.html" in lines
    assert "moved: torch.exp, from old.html#torch.exp to generated/torch.exp.html#torch.exp" in lines


def test_a_refresh_finds_a_name_where_it_is_defined(site: Path) -> None:
    run(site)
    fresh = inventory.load.__wrapped__(site / "inventory.txt")
    assert fresh.release == refresh.installed_release()
    assert fresh.places == {
        "torch.GradScaler.step": "amp.html#torch.amp.GradScaler.step",
        "torch.exp": "generated/torch.exp.html#torch.exp",
        "torch.float32": "tensor_attributes.html#torch.dtype",
        "torch.inference_mode": inventory.own_page("torch.autograd.grad_mode.inference_mode"),
    }


@pytest.mark.parametrize(
    ("missing", "said"), [("names.html", "build the site first"), ("objects.inv", "objects.inv")]
)
def test_what_is_missing_is_said_and_nothing_written(
    site: Path, capsys: pytest.CaptureFixture[str], missing: str, said: str
) -> None:
    before = (site / "inventory.txt").read_text()
    (site / missing).unlink()
    assert run(site) == 1
    assert said in capsys.readouterr().err
    assert (site / "inventory.txt").read_text() == before


def test_what_is_no_inventory_is_refused(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site / "objects.inv").write_text("<html>Not found</html>")
    assert run(site) == 1
    assert "is none" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "# release: 2.13\ntorch.exp page.html\ntorch exp\n",
            r":3: neither a name .*'torch exp'; run: nox -s reference",
        ),
        ("# release: 2.13\n# date: 2026-01-01\ntorch.exp\n", r":1: the head does not say: source; run"),
    ],
)
def test_a_broken_inventory_is_refused_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    broken = tmp_path / "inventory.txt"
    broken.write_text(text)
    with pytest.raises(ValueError, match=said):
        inventory.load(broken)
