"""Where a new page stands: its name in ``reading_order.py``, and the links to it from the pages before and after.

Someone who looks up an error reads no page before it and none after, so pages about errors have groups and no neighbors.
"""

from __future__ import annotations

import ast
import re
from itertools import pairwise

LONGEST_LINE = 118  # as pyproject.toml has it
_SEE_ALSO = "# See also\n# --------\n"
_GOES_ON = r"(?:\n#   .*)*"  # the further lines of an item


def named(source: str, table: str, key: str, page: str, after: str | None) -> str:
    """The source of the reading order, with ``page`` in the list ``table[key]``: behind the page ``after``, or last.

    >>> print(named('T = {"a": ["b", "c"]}', "T", "a", "new", "b"))
    T = {"a": ["b", "new", "c"]}
    """
    pages = _list(ast.parse(source), table, key)
    lines = source.splitlines(keepends=True)
    if not pages.elts:
        return _insert(lines, pages.lineno, pages.col_offset + 1, f'"{page}"')
    last = next((item for item in pages.elts if ast.literal_eval(item) == after), pages.elts[-1])
    if pages.lineno != pages.end_lineno:
        return _insert(lines, last.lineno, len(lines[last.lineno - 1]), " " * last.col_offset + f'"{page}",\n')
    made = _insert(lines, last.end_lineno, last.end_col_offset, f', "{page}"')
    if len(made.splitlines()[pages.lineno - 1]) <= LONGEST_LINE:
        return made
    return _on_lines_of_its_own(made.splitlines(keepends=True), _list(ast.parse(made), table, key))


def _list(tree: ast.Module, table: str, key: str) -> ast.List:
    found = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == table
    ]
    ((_, pages),) = (
        (name, value)
        for name, value in zip(found[0].keys, found[0].values, strict=True)
        if ast.literal_eval(name) == key
    )
    return pages


def _insert(lines: list[str], line: int, column: int, words: str) -> str:
    """Columns of ``ast`` count bytes; the names of chapters and pages have none beyond ASCII."""
    changed = list(lines)
    changed[line - 1] = lines[line - 1][:column] + words + lines[line - 1][column:]
    return "".join(changed)


def _on_lines_of_its_own(lines: list[str], pages: ast.List) -> str:
    """A list of one line, as ruff breaks it."""
    before, line = lines[: pages.lineno - 1], lines[pages.lineno - 1]
    indent = re.match(" *", line)[0]
    items = "".join(f"{indent}    {ast.get_source_segment(''.join(lines), item)},\n" for item in pages.elts)
    broken = f"{line[: pages.col_offset]}[\n{items}{indent}]{line[pages.end_col_offset :]}"
    return "".join([*before, broken, *lines[pages.lineno :]])


def neighbors(chapters: dict[str, list[str]], chapter: str, page: str) -> tuple[str, str]:
    """The pages before and after a page, as ``chapter/page``; empty for none.

    >>> neighbors({"a": ["one", "two"], "errors": ["e"], "b": ["three"]}, "a", "two")
    ('a/one', 'b/three')
    """
    order = [f"{name}/{each}" for name, pages in chapters.items() if name != "errors" for each in pages]
    around = pairwise(pairwise(["", *order, ""]))
    return next((before, after) for (before, this), (_, after) in around if this == f"{chapter}/{page}")


def item(word: str, page: str) -> str:
    """The line of *See also* that names a neighbor.

    >>> item("Next", "graphs/first_graph")
    '# - Next: :ref:`sphx_glr_gallery_graphs_first_graph.py`.'
    """
    return f"# - {word}: :ref:`sphx_glr_gallery_{page.replace('/', '_')}.py`."


def with_neighbor(script: str, word: str, page: str) -> str:
    """A script whose *See also* names ``page`` as what comes before or next. What it said of another page goes."""
    head, mark, see_also = script.rpartition(_SEE_ALSO)
    old = re.compile(rf"^# - {word}: .*{_GOES_ON}", re.MULTILINE)
    new = item(word, page)
    if old.search(see_also):
        see_also = old.sub(lambda _: new, see_also, count=1)
    else:  # the last page of all has nothing after it yet
        see_also = re.sub(rf"\A(# - .*{_GOES_ON}\n)?", lambda first: f"{first[0]}{new}\n", see_also, count=1)
    return head + mark + see_also
