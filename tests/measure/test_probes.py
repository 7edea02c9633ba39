"""Probes can be asked, what the site's PyTorch answers is kept, and what is said of their changes belongs to some."""

from __future__ import annotations

import ast
import json
import platform
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch

import versions
from sources import PINNED, ROOT
from versions import SUBJECTS, Probe, read_probes, spell_out

PROBES = read_probes()
DATA = json.loads(versions.DATA.read_text(encoding="utf-8"))
HERE = torch.__version__.partition("+")[0]
EXPLAINED = tomllib.loads(versions.DATA.with_suffix(".toml").read_text(encoding="utf-8"))["change"]


def name(probe: Probe) -> str:
    return f"{probe.subject}: {probe.key}"


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, str]]:
    """What the PyTorch of this environment says, asked in another order than the one in which the data were made."""
    file = tmp_path_factory.mktemp("answers") / "found.json"
    code = "import sys, json, versions as v; found = {**v.ask_probes(3), 'signatures': v.find_signatures()}"
    code += "; open(sys.argv[1], 'w').write(json.dumps(found))"
    subprocess.run([sys.executable, "-c", code, str(file)], cwd=Path(versions.__file__).parent, check=True)
    return json.loads(file.read_text())


def of_pinned(kind: str) -> dict[str, Any]:
    """The answers that are kept of the version that the site is built with."""
    kept = {what: spell_out(points, list(DATA["versions"])).get(PINNED) for what, points in DATA[kind].items()}
    return {what: answer for what, answer in kept.items() if answer is not None}


@pytest.mark.skipif(HERE != PINNED, reason="what other versions answer is not measured here")
@pytest.mark.parametrize("kind", [*SUBJECTS, "signatures"])
def test_the_site_s_own_pytorch_answers_what_is_kept(answers: dict[str, dict[str, str]], kind: str) -> None:
    """If not, ask again: ``nox -s versions -- here``."""
    same_python = (
        DATA["versions"][PINNED]["python"].rpartition(".")[0] == platform.python_version().rpartition(".")[0]
    )
    if kind not in ("kinks", "nodes") and (not same_python or torch.cuda.is_available()):
        pytest.skip("messages and signatures differ between versions of Python, and with a GPU")
    kept = of_pinned(kind)
    assert {what: answer for what, answer in answers[kind].items() if kept.get(what) != answer} == {}
    assert kept.keys() == answers[kind].keys()


@pytest.mark.skipif(HERE != PINNED, reason="what other versions answer is not measured here")
def test_the_cells_of_operators_are_those_that_are_kept(site: Path) -> None:
    rows = json.loads((ROOT / "docs/reference/data/operators.json").read_text(encoding="utf-8"))["rows"]
    assert {row["name"]: [row[column] for column in versions.COLUMNS] for row in rows} == of_pinned("operators")


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_probe_ends_with_an_expression_on_its_last_line(subject: str) -> None:
    of_subject = [probe for probe in PROBES if probe.subject == subject]
    for probe in of_subject:
        last = ast.parse(probe.code).body[-1]
        assert isinstance(last, ast.Expr) and last.lineno == len(probe.code.splitlines()), probe.code
        assert bool(probe.at) == (subject == "kinks"), probe.code
    assert of_subject and len({probe.key for probe in of_subject}) == len(of_subject)


def test_each_probe_is_answered_in_one_line_of_no_machine(answers: dict[str, dict[str, str]]) -> None:
    wrong = re.compile(
        r"$|NameError|SyntaxError|IndentationError|no answer within|ended with exit"
        r"|.*(\n|0x[0-9a-f]{4}|/(home|root|tmp|usr|work)/|site-packages)"
    )
    found = {f"{kind}: {key}": answer for kind in SUBJECTS for key, answer in answers[kind].items()}
    assert {key: answer for key, answer in found.items() if wrong.match(answer)} == {}


def test_an_explanation_has_probes_of_its_own_a_text_and_maybe_a_link() -> None:
    counted = Counter(name for change in EXPLAINED for name in change["probes"])
    assert counted.keys() <= set(map(name, PROBES)) and max(counted.values()) == 1
    link = re.compile(r"https://github\.com/pytorch/pytorch/(pull|issues)/\d+")
    for change in EXPLAINED:
        assert {"probes", "text"} <= change.keys() <= {"probes", "text", "link"}, change
        assert change["probes"] and change["text"].endswith("."), change
        assert "link" not in change or link.fullmatch(change["link"]), change
