"""A sphinx-gallery scraper that writes down the graphs a cell asks for with ``# graph: NAME -- TITLE``.

torch is imported where a graph is read: a build in which no example runs does without it, and so without its seconds.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import line_watcher, node_lines
from .assigned_lines import Statement, loop_variables, statement_at, statements_of_names
from .request_comments import CommentError, GraphRequest, requests_for

if TYPE_CHECKING:
    from graphs.model import Card, Graph


def scrape(block: Any, block_vars: Mapping[str, Any], gallery_conf: Mapping[str, Any]) -> str:
    """Return reST for the block's graphs, and write the data of each to ``NAME_001.graph.json`` among the gallery's images.

    :raises CommentError: for a name that the script does not have, or that has no graph; it names file and line.
    """
    node_lines.note(None)
    path = block_vars["src_file"]
    wanted = requests_for(GraphRequest, block, path)
    rst = []
    if wanted:
        from graphs.fold import fold_graph
        from graphs.model import graph_to_dict

        assigned = statements_of_names(path, block.lineno + block.content.count("\n"))
        namespace = _namespace(block_vars["example_globals"], path)
        for request in wanted:
            file = Path(next(block_vars["image_path_iterator"])).with_suffix(".graph.json")
            with line_watcher.paused():
                graph = fold_graph(_read(request, namespace, path))
            made_by = {str(card.key): made for card in graph.cards if (made := _made_by(card, path, assigned))}
            data = {"graph": graph_to_dict(graph), "made_by": made_by, "show_saved": "saved" in request.options}
            file.write_text(json.dumps(data, ensure_ascii=False, allow_nan=False), encoding="utf-8")
            rst.append(_directive(file.relative_to(gallery_conf["src_dir"]), request))
    return "".join(rst)


def _read(request: GraphRequest, namespace: Mapping[str, Any], path: str) -> Graph:
    import torch

    from graphs.read import GraphError, read_graph

    at = f"{path}:{request.line}"
    for name in request.names:
        if name not in namespace:
            tensors = [key for key, value in namespace.items() if isinstance(value, torch.Tensor)]
            near = difflib.get_close_matches(name, tensors, n=1, cutoff=0.4)
            hint = f"did you mean {near[0]!r}?" if near else f"its tensors are: {', '.join(sorted(tensors))}"
            raise CommentError(f"{at}: the script has no variable {name!r} at the end of this cell; {hint}")
    try:
        return read_graph(
            {name: namespace[name] for name in request.names},
            namespace,
            accumulate="AccumulateGrad" in request.options,
        )
    except GraphError as error:
        raise CommentError(f"{at}: cannot draw a graph: {error}") from None


def _made_by(card: Card, path: str, assigned: Mapping[str, Statement]) -> Statement | None:
    """The statement that recorded the card's node; of a leaf, and of a node that no line recorded, the one that named it."""
    line = None if card.recorded_as is None else node_lines.line_of(card.recorded_as)
    if line is not None:
        return statement_at(path, line)
    return next((assigned[name] for name in card.names if name in assigned), None)


def _namespace(script: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The script's variables without those of its loops, which only repeat a name that a tensor has already."""
    loops = loop_variables(path)
    return {name: value for name, value in script.items() if name not in loops}


def _directive(file: Path, request: GraphRequest) -> str:
    return f"\n.. graph-figure:: /{file.as_posix()}\n   :title: {request.title}\n   :table:\n\n"
