"""A graph survives the way through a file of JSON, and only what reads graphs is loaded to read them."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import torch
from shorthand import graph_of

from atlas.gallery.cache import list_code
from drawgrad.model import Card, Edge, Graph, graph_from_dict, graph_to_dict
from sources import ROOT


def send_through_json(graph: Graph) -> Graph:
    return graph_from_dict(json.loads(json.dumps(graph_to_dict(graph), allow_nan=False)))


def test_a_graph_with_a_program_comes_back_as_it_was() -> None:
    w = torch.tensor([0.1, 2.0], requires_grad=True)
    y = ((w * 3).clamp(0) + 0.5).sum()
    y.backward()
    graph = graph_of("y", w=w, y=y)
    assert send_through_json(graph) == graph
    x = torch.tensor(0.1, requires_grad=True)
    graph = graph_of("z", x=x, z=x.clamp(min=0) * 2)
    assert graph.program and send_through_json(graph) == graph, "a bound that is infinite"


def test_numbers_that_json_does_not_know_come_back() -> None:
    terms = (math.inf, -math.inf, 1.5)
    cards = (
        Card(0, "leaf", names=("inf",), shape=(), value=complex(1, -math.inf), terms=terms),
        Card(1, "function", "F", ("y",), True, shape=(2, 3), saved=("freed",), gradient_shape=(2, 3), recorded_as=7),
    )
    graph = Graph(cards, (Edge(0, 1, 2, 1, -0.5),), left_out=3)
    assert send_through_json(graph) == graph
    found = send_through_json(Graph((Card(0, "leaf", value=math.nan),), ())).cards[0].value
    assert isinstance(found, float) and math.isnan(found)


def loaded_by(code: str) -> set[str]:
    code = f"import sys; sys.path.insert(0, 'conf'); {code}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_cache_of_examples_depends_on_what_reads_and_not_on_what_draws() -> None:
    loaded = {name for name in loaded_by("import drawgrad.read") if name.startswith("drawgrad.")}
    counted = {path.stem for path in list_code(ROOT / "conf") if path.parent.name == "drawgrad"} - {"__init__"}
    assert {name.partition(".")[2] for name in loaded} == counted


def test_a_page_is_drawn_without_torch_and_nothing_knows_the_site() -> None:
    found = loaded_by("import drawgrad.drawing, drawgrad.play")
    assert not {"torch", "sphinx", "docutils", "atlas"} & found
