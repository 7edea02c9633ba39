"""Which pages are like a page: those that share rare names with it, in an order that does not depend on theirs."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from atlas.names import Used
from atlas.related import MOST, find_nearest, weigh_names

USED = {
    "a": {"hook", "vmap", "tensor"},
    "b": {"hook", "vmap", "tensor"},
    "c": {"hook", "sum", "tensor"},
    "d": {"sum", "mean", "tensor"},
    "e": {"tensor", "only_here"},
    "f": set(),
    "g": {"tensor", "mean"},
    "h": {"tensor", "exp"},
}


def vectors(used: Mapping[str, Collection[str]], spoken: Mapping[str, set[str]]) -> dict[str, dict[str, float]]:
    facts = {page: Used(sorted(names), sorted(spoken.get(page, ()))) for page, names in used.items() if names}
    return weigh_names(facts)


def test_the_page_with_more_of_the_same_rare_names_comes_first() -> None:
    """What all pages use, and what one page uses, is nothing in common."""
    about = vectors(USED, {})
    assert find_nearest("a", about, USED)[0] == "b" and "a" not in find_nearest("a", about, USED)
    assert about["e"] == {} and "f" not in about
    assert find_nearest("e", about, USED) == find_nearest("f", about, USED) == []


def test_one_name_in_common_is_a_coincidence() -> None:
    used = {"a": {"x", "y"}, "b": {"x"}, "c": {"y", "z"}, "d": {"z"}, "e": {"w"}, "f": {"w"}}
    assert find_nearest("b", vectors(used, {}), used) == []


def test_a_name_that_the_text_speaks_of_counts_more() -> None:
    used = {"a": {"x", "y", "z"}, "b": {"x", "y"}, "c": {"y", "z"}, "d": {"w"}, "e": {"w"}, "f": {"v"}, "g": {"v"}}
    assert vectors(used, {"a": {"z"}})["a"]["z"] > vectors(used, {})["a"]["z"]


def test_there_are_few_and_equals_are_in_the_order_of_their_names() -> None:
    used = {name: {"x", "y"} for name in "hgfedcba"} | {f"other{number}": {"z"} for number in range(20)}
    about = vectors(used, {})
    assert find_nearest("d", about, list(used)) == find_nearest("d", about, list(reversed(used))) == ["a", "b", "c"]
    assert MOST == 3
