"""The order in which a reader meets the chapters and their pages. A new page goes last until it is named here."""

from __future__ import annotations

CHAPTERS = {
    "graphs": ["first_graph", "leaves_and_roots", "functions_are_nodes"],
    "functions": ["exp_function"],
    "tensors": ["copy_table"],
    "debugging": ["anomaly_detection"],
    "profiling": ["profiler_table"],
    "cuda": ["devices", "no_grad_memory"],
}

# Page names are unique in the whole gallery (sphinx-gallery insists on it), so one count serves all chapters.
_POSITION = {page: number for number, page in enumerate(page for pages in CHAPTERS.values() for page in pages)}


def page_order(file_name: str) -> tuple[int, str]:
    """Sort key for an example's file name: its place in ``CHAPTERS``, and pages that are not named there last.

    >>> sorted(["zero.py", "leaves_and_roots.py", "first_graph.py"], key=page_order)
    ['first_graph.py', 'leaves_and_roots.py', 'zero.py']
    """
    name = file_name.removesuffix(".py")
    return _POSITION.get(name, len(_POSITION)), name
