"""In words, of which kind the samples are that differ from the others: *raises if transposed*."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

#: What is known of a sample, by the name of the attribute: its ``type``, ``layout`` and ``dimensions``, and of each argument
#: whether it is a tensor, whether it requires a gradient, and its value if that is a word or a number.
Kind = Mapping[str, str]
#: Attributes of all samples, the most telling first. Those of arguments come after them.
FIRST = ("type", "layout", "result", "changed")
LAST = ("dimensions",)
MOST_VALUES = 3


def tell_condition(seen: Sequence[tuple[Kind, bool]], *, but: str = "") -> str:
    """What the samples have in common for which something holds.

    An attribute tells if no sample of the others has one of its values, and so do two together: ``if``. It still tells
    something if it does not hold for other values: ``only if``. Of several the first counts, so the answer is a reading of
    these samples, not a law.

    :param but: an argument that is not asked about.
    :returns: nothing if it holds for all samples or for none.

    >>> seen = [({"layout": "contiguous"}, False), ({"layout": "transposed"}, True), ({"layout": "sliced"}, True)]
    >>> tell_condition(seen)
    'if sliced or transposed'
    >>> tell_condition([*seen, *3 * [({"layout": "contiguous"}, False)], ({"layout": "sliced"}, False)])
    'only if sliced or transposed'
    >>> tell_condition([({"type": "float64"}, True), ({"type": "float64"}, False), ({"type": "float64"}, False)])
    'in some samples'
    """
    holds = [kind for kind, answer in seen if answer]
    others = [kind for kind, answer in seen if not answer]
    if not holds or not others:
        return ""
    names = [
        name
        for name in _order_attributes(kind for kind, _answer in seen)
        if not but or name not in (but, f"{but}.requires_grad", f"{but}.value")
    ]
    told = [(name, _collect_values(holds, name), _collect_values(others, name)) for name in names]
    for name, ours, theirs in told:
        if len(ours) <= MOST_VALUES and not ours & theirs:
            return f"if {_phrase_values(name, ours)}"
    same = [(name, *ours) for name, ours, _theirs in told if len(ours) == 1]
    for (one, a), (two, b) in combinations(same, 2):
        if not any(_read_value(kind, one) == a and _read_value(kind, two) == b for kind in others):
            return f"if {_phrase_values(one, {a})} and {_phrase_values(two, {b})}"
    shares = {
        name: sum(_read_value(kind, name) in ours for kind in others)
        for name, ours, theirs in told
        if len(ours) <= MOST_VALUES and theirs - ours
    }
    if shares and (name := min(shares, key=lambda name: shares[name])) and shares[name] < len(others) / 2:
        return f"only if {_phrase_values(name, _collect_values(holds, name))}"
    return "in some samples" if len(holds) < len(others) else "in most samples"


def _order_attributes(kinds: Iterable[Kind]) -> list[str]:
    """All attributes in the order in which they are asked."""
    names = {name for kind in kinds for name in kind}
    numbers = {name for name in names if name.endswith(".value")}
    words = names - numbers - {*FIRST, *LAST}
    return [*(n for n in FIRST if n in names), *sorted(words), *(n for n in LAST if n in names), *sorted(numbers)]


def _collect_values(kinds: Sequence[Kind], name: str) -> set[str]:
    return {_read_value(kind, name) for kind in kinds}


def _read_value(kind: Kind, name: str) -> str:
    """Nothing if the argument is not given; of one that is no number in this sample what it is.

    >>> [_read_value(kind, "n.value") for kind in ({"n": "a number", "n.value": "3"}, {"n": "a tensor"}, {})]
    ['3', 'a tensor', '']
    """
    return kind.get(name, "") or kind.get(name.removesuffix(".value"), "")


def _phrase_values(name: str, values: set[str]) -> str:
    """An attribute with some of its values.

    >>> _phrase_values("layout", {"sliced"}), _phrase_values("type", {"float32", "float64"})
    ('sliced', 'the type is float32 or float64')
    >>> _phrase_values("dimensions", {"4"}), _phrase_values("mode", {"", "'sum'"})
    ('it has 4 dimensions', "`mode` is not given or 'sum'")
    """
    said = " or ".join(value or "not given" for value in sorted(values))
    match name:
        case "layout":
            return said
        case "dimensions":
            return f"it has {said} dimensions"
        case "sizes":
            return f"a size is {said}"
        case "result":
            return f"it is result {said}"
        case "changed":
            return f"{' or '.join(f'`{value}`' for value in sorted(values))} is changed"
        case "type":
            return f"the type is {said}"
        case _ if name.endswith(".dimensions"):
            said = " or ".join(value or "as many as the first" for value in sorted(values))
            return f"the dimensions of `{name.removesuffix('.dimensions')}` are {said}"
        case _ if name.endswith(".requires_grad"):
            return f"`{name.removesuffix('.requires_grad')}` requires {'no' if 'False' in values else 'a'} gradient"
        case _:
            name = name.removesuffix(".value")
            return f"`{name}` is {said}"
