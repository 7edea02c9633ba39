"""What differs between what two versions of PyTorch were measured to do. Rounding, addresses and timings are no difference."""

from __future__ import annotations

import math
import re
from typing import Any

RELATIVE = 1e-3
"""How far two numbers of an output may be apart, as a part of the greater one: kernels add in another order."""
ABSOLUTE = 1e-6
"""And how far in all: what is left of a difference of nearly equal numbers has no digits to compare."""
#: What a row of the operators' table says that a version may change; its error is rounding, and its samples differ.
COLUMNS = ("nodes", "saves", "shares", "output_changed", "input_changed", "second", "forward")
_NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.?\d+)(?:e[-+]?\d+)?", re.IGNORECASE)
#: A message of an error or a warning, as it stands in an output.
_MESSAGE = re.compile(r"^(?:\w+\.)*\w*(?:Error|Warning|Exception): .+", re.MULTILINE)


def same(one: str, other: str) -> bool:
    """Whether two outputs are the same, but for rounding and for spaces.

    >>> same("loss: 0.33181", "loss:  0.33182"), same("tensor([1, 0])", "tensor([1, 1])"), same("n: 12", "n: 13")
    (True, False, False)
    """
    if _NUMBER.sub("#", one).split() != _NUMBER.sub("#", other).split():
        return False
    return all(_near(a, b) for a, b in zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True))


def _near(one: str, other: str) -> bool:
    if one == other or (one.lstrip("-+").isdecimal() and other.lstrip("-+").isdecimal()):
        return one == other
    return math.isclose(float(one), float(other), rel_tol=RELATIVE, abs_tol=ABSOLUTE)


def example(base: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What an example does otherwise: ``faults``, and the outputs that ``differ``, up to the first cell with a fault.

    What comes after a fault may differ because of it. Cells whose output varies with each run are left out.
    """
    first = min((fault["cell"] for fault in other["faults"]), default=math.inf)
    theirs = {output["cell"]: output["text"] for output in other["outputs"]}
    differ = [
        {"cell": output["cell"], "was": output["text"], "is": theirs.get(output["cell"], "")}
        for output in base["outputs"]
        if not output["varies"]
        and output["cell"] < first
        and not same(output["text"], theirs.get(output["cell"], ""))
    ]
    return {"code": other["code"], "faults": other["faults"], "differ": differ}


def messages(differ: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The messages in outputs that differ: pairs of the build's own and the other's. Those that are the same are left out.

    >>> messages([{"cell": 1, "was": "w = 2\\nRuntimeError: is being used", "is": "w = 2\\nRuntimeError: has been used"}])
    [('RuntimeError: is being used', 'RuntimeError: has been used')]
    """
    found = []
    for output in differ:
        ours, theirs = _MESSAGE.findall(output["was"]), _MESSAGE.findall(output["is"])
        if len(ours) == len(theirs):
            found += [(one, other) for one, other in zip(ours, theirs, strict=True) if not same(one, other)]
    return found


def operators(base: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The cells of the operators' table that differ, and the operators that only one version has."""
    if "failed" in other:
        return {"code": other["code"], "failed": other["failed"]}
    ours, theirs = ({row["name"]: row for row in found["rows"]} for found in (base, other))
    differ = [
        {"name": name, "column": column, "was": ours[name][column], "is": theirs[name][column]}
        for name in ours
        if name in theirs
        for column in COLUMNS
        if ours[name][column] != theirs[name][column]
    ]
    unprobed = {*base["not_probed"], *other["not_probed"]}
    return {
        "code": other["code"],
        "count": len(ours.keys() & theirs.keys()),
        "differ": differ,
        "missing": sorted(ours.keys() - theirs.keys() - unprobed),
    }


def signatures(base: dict[str, str], other: dict[str, str]) -> dict[str, Any]:
    """The signatures that differ, and the names that only one of the versions has."""
    both = base.keys() & other.keys()
    return {
        "count": len(both),
        "differ": {name: [base[name], other[name]] for name in sorted(both) if base[name] != other[name]},
        "missing": sorted(base.keys() - other.keys()),
        "gone": sorted(other.keys() - base.keys()),
    }
