"""Markdown pages that must not get through, each with one fault."""

from __future__ import annotations

from tiny.broken import doc

#: A drawing that speaks of something else than a graph, as those of matplotlib do.
PLOT = "<svg><metadata>\n <rdf/>\n</metadata></svg>\n"
DOCS = [
    doc(
        "formula",
        "# Title\n\nA good one, $x$.\n\nA bad one: $\\frac{1$.\n",
        "this formula cannot be converted",
        "A bad",
    ),
    doc("solution", "# Title\n\n```{solution}\n```\n\n## Next\n\nText.\n", "nothing follows this solution", "```{"),
    doc("reference", "# Title\n\nSee {ref}`nowhere`.\n", "undefined label: 'nowhere'", "See"),
    doc(
        "untitled",
        "# Title\n\n```{graph-figure} /gallery/faults/images/sphx_glr_no_001.graph.json\n```\n",
        "a graph figure needs a :title:",
        "```{",
    ),
    doc(
        "missing",
        "# Title\n\n```{graph-figure} /gallery/faults/images/sphx_glr_no_001.graph.json\n:title: A title\n```\n",
        "cannot read the graph's drawing: No such file or directory",
        "```{",
    ),
    doc("a_plot", "# Title\n\n```{graph-figure} /plot.svg\n:title: A title\n```\n", "/plot.svg is no graph", "```{"),
]
