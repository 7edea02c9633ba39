"""``graph_live.js`` in a JavaScript engine of its own: V8, which Chromium has too."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import jinja2
from py_mini_racer import MiniRacer

from drawgrad.rules import RULES, write_javascript
from sources import ROOT

_SAFE = "(_key, x) => Object.is(x, -0) ? '-0' : typeof x === 'number' && !Number.isFinite(x) ? String(x) : x"


def fill_template(path: str) -> str:
    """A script as Sphinx writes it."""
    template = jinja2.Template((ROOT / path).read_text(encoding="utf-8"))
    return template.render(graph_rules=write_javascript(), node_rules=RULES)


@cache
def engine() -> MiniRacer:
    """The script as Sphinx writes it, loaded."""
    found, script = MiniRacer(), fill_template("conf/drawgrad/web/graph_live.js.jinja")
    found.eval(script)
    found.eval(re.search(r"const pow = .*", script)[0])
    found.eval(f"const round = x => x; const rules = {write_javascript()}; const safe = {_SAFE}")
    return found


def run(code: str) -> Any:
    """What an expression gives. A number that JSON does not know comes as text, as ``float`` reads it."""
    return json.loads(engine().eval(f"JSON.stringify({code}, safe) ?? 'null'"))


def compute(program: dict[str, Any], given: dict[str, list[float]]) -> dict[str, Any]:
    """Values, gradients, and what moves along each edge, with these values of the leaves."""
    return run(f"graphLive.compute({json.dumps(program)}, {written(given)})")


def fill(template: str, found: dict[str, Any]) -> str:
    """A sentence with its places filled."""
    return run(f"graphLive.filler({written(found)})({json.dumps(template)})")


def fill_all(program: dict[str, Any], templates: list[str]) -> list[str]:
    """Sentences with their places filled, at the script's own values of the leaves."""
    return run(f"{json.dumps(templates)}.map(graphLive.filler(graphLive.compute({json.dumps(program)}, {{}})))")


def written(what: Any) -> str:
    """JSON, with NaN and infinities as JavaScript has them."""
    return json.dumps(what)
