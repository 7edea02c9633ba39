"""A repository with three chapters of two pages each, to make pages in."""

from __future__ import annotations

from pathlib import Path

ORDER = '''"""The order."""

ERRORS = {
    "Backward fails": ["broken", "graphs/first"],
    "Shapes do not fit": [
        "misfit",
    ],
}

CHAPTERS = {
    "graphs": [
        "first",
        "second",
    ],
    "errors": [page for pages in ERRORS.values() for page in pages if "/" not in page],
    "modes": ["third", "fourth"],
    "cuda": [
        "fifth",
    ],
}
'''
PAGE = '''r"""
{page}
{line}

Text about {page}.
"""

x = 1
assert x

# %%
# See also
# --------
{items}# - Something else, which
#   goes on.
'''
TAGS = """tags = ["one", "two", "GPU", "error"]

[graphs]
first = ["one"]
second = ["two", "one"]

[errors]
broken = ["error"]
misfit = ["error"]

[modes]
third = ["two"]
fourth = ["two"]

[cuda]
fifth = ["GPU"]
"""
READ = ["graphs/first", "graphs/second", "modes/third", "modes/fourth", "cuda/fifth"]


def written(root: Path) -> Path:
    """Write the repository's files below ``root``."""
    order = root / "conf/atlas/reading_order.py"
    order.parent.mkdir(parents=True)
    order.write_text(ORDER)
    around = zip(["", *READ], READ, [*READ[1:], ""], strict=False)
    for before, page, after in around:
        links = {"Before": before, "Next": after}
        items = "".join(
            f"# - {word}: :ref:`sphx_glr_gallery_{other.replace('/', '_')}.py`, and\n#   why.\n"
            for word, other in links.items()
            if other
        )
        _page(root, page, items)
    (root / "examples/tags.toml").write_text(TAGS)
    for page in ("errors/broken", "errors/misfit"):
        _page(root, page, "")
    return root


def _page(root: Path, page: str, items: str) -> None:
    path = root / "examples" / f"{page}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PAGE.format(page=path.stem, line="=" * len(path.stem), items=items))
