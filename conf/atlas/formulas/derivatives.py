"""The formulas of PyTorch's own backward nodes, as the installed PyTorch was generated from them.

PyTorch keeps them in ``derivatives.yaml`` and makes C++ of them when it is built. Both the file and its reader are in the
package ``torchgen`` that comes with PyTorch. What was read is kept as JSON, for the page that lists it and for whoever wants
the data.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

from atlas import toolbox

DATA = Path("reference/data/formulas.json")

#: Nodes of PyTorch's own tests, and of variants that are generated: each has the formulas of the operator that it copies.
_LEFT_OUT = ("TestAutograd", "TestWarn")
_COPIES = "_copy"


def read() -> dict[str, dict[str, Any]]:
    """Each node of ``derivatives.yaml`` by its name: of which operator it is, its formulas, and the tensors that they need.

    A node has ``schema`` (of the operator), ``key`` (the dispatch key, if the formulas are for one alone), ``backward`` and
    ``forward`` (pairs of names of arguments or results, and a formula), and ``saves`` (names of arguments, or ``result``).

    :raises ImportError: if this PyTorch comes without the file's reader.
    """
    import torchgen
    from torchgen.packaged.autograd.load_derivatives import load_derivatives

    package = Path(torchgen.__file__).parent / "packaged"
    files = ("autograd/derivatives.yaml", "ATen/native/native_functions.yaml", "ATen/native/tags.yaml")
    of_schemas, _dispatch_keys = load_derivatives(*(str(package / file) for file in files))
    return {
        found.op: _node("" if key == "Default" else key, found)
        for of_keys in of_schemas.values()
        for key, found in of_keys.items()
        if found.op and not found.op.startswith(_LEFT_OUT) and not found.op.endswith(_COPIES)
    }


def _node(key: str, found: Any) -> dict[str, Any]:
    saved = [attribute.nctype for one in found.derivatives for attribute in (*one.saved_inputs, *one.saved_outputs)]
    return {
        "schema": str(found.func.func),
        "key": key,
        "backward": [[list(one.var_names), one.original_formula] for one in found.derivatives],
        "forward": [[list(one.var_names), one.formula] for one in found.forward_derivatives],
        "saves": sorted({str(kept.name) for kept in saved if _is_tensor(kept.type.cpp_type(strip_ref=True))}),
    }


def _is_tensor(type_of_cpp: str) -> bool:
    """Whether a value that a node saves is a tensor or several, and not what is known about one.

    >>> _is_tensor("::std::vector<at::Tensor>"), _is_tensor("at::TensorOptions")
    (True, False)
    """
    return bool(re.search(r"\bTensor(List|Ref)?\b", type_of_cpp))


def load(path: Path) -> dict[str, dict[str, Any]] | None:
    """The nodes kept at ``path``; None if they are missing, broken, or of another PyTorch."""
    kept = toolbox.load_json(path, _identity())
    return kept and kept["nodes"]


def save(path: Path, nodes: dict[str, dict[str, Any]]) -> None:
    """Write the nodes, whole or not at all."""
    toolbox.save_json(path, _identity(), nodes=nodes)


def _identity() -> dict[str, str]:
    return {"torch": version("torch").partition("+")[0]}
