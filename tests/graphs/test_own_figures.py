"""``draw(loss)``: a figure of the reader's own graph names what it knows, marks what is wrong, and needs nothing else."""

from __future__ import annotations

import html
import re
import weakref
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from shorthand import card, first_graph, labels
from torch import nn

from drawgrad import Figure, GraphError, draw


def make_net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 1))


def read_page(figure: Figure) -> str:
    """What the frame in a notebook holds."""
    return html.unescape(re.fullmatch(r'<iframe [^>]*srcdoc="([^"]*)"></iframe>', figure._repr_html_())[1])


# -- Names and marks --------------------------------------------------------------------------------------


def test_names_are_those_of_the_caller_wherever_it_stands() -> None:
    net = make_net()
    hidden = net[0](torch.ones(2, 3))
    loss = net[2](net[1](hidden)).sum()
    assert {"net.0.weight", "net.2.bias", "hidden", "loss"} <= {*labels(draw(loss).graph)}
    assert draw(loss).title == "Backward graph of loss"
    assert draw(loss * 2).title == "Backward graph"
    by_tensor = {hidden: hidden * 2}  # a tensor, printed, is no name
    assert labels(draw(by_tensor[hidden]).graph)[-1] == "MulBackward0"


def test_models_in_attributes_and_containers_are_found() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.model, self.nets = (
                nn.Sequential(*(make_net().append(nn.Linear(1, 3)) for _ in range(6))),
                [make_net()],
            )

        def draw_loss(self) -> Figure:
            return draw(self.nets[0](self.model(torch.ones(1, 3))).sum())

    layers = [nn.Linear(3, 4), nn.Sigmoid(), nn.Linear(4, 1)]
    net = nn.Sequential(*layers)
    for parameter in net.parameters():
        assert {"net.2.bias"} < {*labels(draw(net(torch.ones(1, 3)) + parameter).graph)}
    figure = Trainer().draw_loss()
    assert {"self.model.0", "self.model.5"} <= {*labels(figure.shown)} and "self" not in figure.modules
    assert {"self.model.0.0.weight", "self.nets[0].0.bias"} <= {*labels(figure.graph)}


def test_gradients_are_measured_and_tinted_and_bad_ones_are_marked() -> None:
    net = make_net()
    loss = net(torch.ones(2, 3)).sum()
    net[0].bias.grad = torch.ones(4)
    assert not any(card.alarm for card in draw(loss).shown.cards), "nothing is wrong before its own backward pass"
    loss.backward()
    net[0].weight.grad *= 1e-4
    net[0].bias.grad = None
    net[2].weight.grad[0, 0] = torch.nan
    graph = draw(loss).shown
    assert card(graph, "net.0.weight").gradient_norm == pytest.approx(float(net[0].weight.grad.norm()))
    assert 0 < card(graph, "net.0.weight").tint < card(graph, "net.2.bias").tint == 5
    assert [card(graph, f"net.{name}").alarm for name in ("0.bias", "2.weight")] == ["None", "has NaN"]
    assert "✗ grad None" in draw(loss).drawn_svg
    net.zero_grad(set_to_none=False)
    assert card(draw(loss).shown, "net.2.bias").alarm == "all zero"
    loss = net(torch.ones(2, 3)).sum()
    assert not any(card.alarm for card in draw(loss).shown.cards), "zero_grad() made the zeros"
    loss.backward(retain_graph=True)
    net[2].bias.grad.zero_()
    assert card(draw(loss).shown, "net.2.bias").alarm == "all zero"


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_a_tiny_gradient_is_not_zero_and_a_huge_one_is_finite(size: float) -> None:
    w = torch.ones(4, requires_grad=True)
    (w.exp() * size).sum().backward()
    assert card(draw(w.exp().sum()).shown, "w").gradient_norm == pytest.approx(
        2 * 2.718281828 * size, rel=1e-5, abs=0
    )


def test_parameters_that_the_graph_does_not_lead_to_are_named() -> None:
    net = nn.ModuleDict({"used": nn.Linear(2, 1), "forgotten": nn.Linear(2, 1)})
    net["forgotten"].bias.requires_grad_(False)  # is not expected to learn
    (note,) = draw(net["used"](torch.ones(2)).sum()).notes
    assert note.endswith(": net.forgotten.weight.")


def test_parameters_in_a_reentrant_checkpoint_get_their_gradients() -> None:
    net = make_net()
    loss = torch.utils.checkpoint.checkpoint(net[2], net[0](torch.ones(2, 3)), use_reentrant=True).sum()
    assert not draw(loss).notes


def test_what_is_expanded_keeps_little() -> None:
    x, w = torch.ones(1, requires_grad=True), torch.ones(100, 100, requires_grad=True)
    y = x.expand(100, 100) * w
    assert card(draw(y, saved=True).shown, "y").saved == ("other (100×100), 40 kB", "self (100×100), 4 B")
    y[0].mul_(2)
    assert draw(y, saved=True).notes[0].endswith("CopySlices keeps, is not counted.")


def test_a_figure_keeps_no_tensor_and_calls_no_hook() -> None:
    packed: list[torch.Tensor] = []
    x = torch.tensor(2.0, requires_grad=True)
    hidden = x.exp()
    y = hidden * x
    with torch.autograd.graph.saved_tensors_hooks(packed.append, lambda tensor: tensor):
        assert draw(y).graph.program
    kept = weakref.ref(hidden)
    del hidden, y
    assert not packed and kept() is None


def test_what_is_saved_is_said_in_bytes_and_shared_memory_is_counted_once() -> None:
    z = ((y := torch.ones(3, 4, requires_grad=True).exp()) * y).sum()
    assert card(draw(z, saved=True).shown, "y").saved == ("result (3×4), 48 B",)
    assert draw(z, saved=True).notes == [
        "The nodes keep 48 B for backward; memory that several keep is counted once."
    ]
    assert not card(draw(z).shown, "y").saved
    z.backward()
    assert "freed" in draw(z).notes[0]


def test_values_can_be_left_out() -> None:
    w = first_graph()["w"]
    assert not re.search(r"\d\.\d", str(draw(w, values=False)))


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.autograd.set_detect_anomaly])
def test_a_figure_can_be_drawn_in_any_mode(mode: Any) -> None:
    lazy, x = nn.LazyLinear(2), torch.tensor(0.0, requires_grad=True)
    y = (x * x).sqrt() * 0  # its gradient is NaN
    with mode(True):
        assert labels(draw(y).graph)[0] == "x" and lazy


def test_a_figure_can_be_drawn_inside_of_torch_func() -> None:
    figures: list[Figure] = []

    def compute_loss(x: torch.Tensor) -> torch.Tensor:
        figures.append(draw(loss := x.sin().sum()))
        return loss

    torch.func.grad(compute_loss)(torch.ones(3))
    assert figures[0].title == "Backward graph of loss"


# -- Modules and large graphs -----------------------------------------------------------------------------


def test_modules_fold_and_say_what_is_wrong_inside() -> None:
    model = nn.Sequential(*(make_net().append(nn.Linear(1, 3)) for _ in range(6)))
    (loss := model(torch.ones(1, 3)).sum()).backward()
    model[1][0].bias.grad = None
    figure = draw(loss)
    assert len(figure.shown.cards) < 12 < len(draw(loss, depth=None).shown.cards)
    assert card(figure.shown, "model.1").alarm == "None in 1 of 6"
    model[1][2].bias.grad.zero_()
    assert card(draw(loss).shown, "model.1").alarm == "all zero in 1, None in 1 of 6"
    assert read_page(figure).count("Inside of <code>") == 6


@pytest.mark.parametrize("length", [300, 60_000])
def test_of_a_long_chain_the_part_near_the_result_is_drawn(length: int) -> None:
    y = torch.ones(2, requires_grad=True)
    for _ in range(length):
        y = y.sin()
    figure = draw(y)
    assert figure.shown.cards[-1].names == ("y",) and len(figure.shown.cards) <= 80
    assert bool(figure.notes) == (length > 300)


# -- What cannot be drawn ---------------------------------------------------------------------------------

LEAF = torch.ones(2, requires_grad=True)
REFUSED = {
    "nothing to draw": (),
    "a float, not a tensor": (3.0,),
    "Draw a tensor in it": ({"loss": LEAF},),
    "as draw": (nn.Linear(1, 1),),
    "'LEAF' is a leaf": (LEAF,),
    "Likely causes.*detach": (LEAF.detach(),),
    "int64": (LEAF.argmax(),),
}


@pytest.mark.parametrize("message", REFUSED)
def test_bad_input_gets_a_clear_sentence(message: str) -> None:
    with pytest.raises(GraphError, match=message):
        draw(*REFUSED[message])


def test_a_compiled_model_is_said_to_be_one() -> None:
    loss = torch.compile(make_net(), backend="aot_eager")(torch.ones(1, 3)).sum()
    assert "stands for many operations" in draw(loss).notes[0]


# -- The figure -------------------------------------------------------------------------------------------


def test_the_page_is_whole_and_asks_no_site() -> None:
    x = torch.tensor(2.0, requires_grad=True)
    y = x.sin() * x
    page = read_page(draw(y))
    assert "const rules = {\nAbs:" in page and "graph-whose" in page, "its leaves can be changed"
    assert {*re.findall(r"https?://[^\s\"')]+", page)} == {"http://www.w3.org/2000/svg"}, "a name, not an address"
    assert not re.search(r"\s(src|href)=|@import|url\(", page.replace('href="#graph"', ""))


def test_a_figure_can_be_saved(tmp_path: Path) -> None:
    x = torch.tensor(2.0, requires_grad=True)
    figure = draw((x.sin() * x).exp())
    for end in ("svg", "html", "png", "dot"):
        figure.save(tmp_path / f"y.{end}")
    svg = tmp_path.joinpath("y.svg").read_text(encoding="utf-8")
    assert ElementTree.fromstring(svg).tag.endswith("svg") and "#059669" in svg and "var(" not in svg
    assert tmp_path.joinpath("y.png").read_bytes().startswith(b"\x89PNG")
    assert re.search(r"<b>x</b>.*leaf.*>2<", tmp_path.joinpath("y.dot").read_text(encoding="utf-8"))
    with pytest.raises(ValueError, match=r"\.svg, \.png, \.html or \.dot, not as '\.pdf'"):
        figure.save("y.pdf")


def test_print_shows_the_table() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    leaf, root = str(draw(x**2)).splitlines()[2:]
    assert leaf.split() == ["x", "leaf", "3", "PowBackward0", "×", "6"] and root.startswith("PowBackward0")
