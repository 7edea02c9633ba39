"""Runs the examples, each in a process of its own, and fills sphinx-gallery's cache with what they made.

sphinx-gallery then finds every page current and only assembles the gallery. In the order of a build:

``build_guard``         after a killed build the next starts from scratch; ``lock``: one build of a checkout at a time
``build_step``          what a Sphinx build calls, and when
``model``, ``scripts``  which examples there are, and which scripts no page can be made of
``gpu``                 whether there is one
``halves``              what of a page needs a GPU, and what does not
``fill``                finds the examples whose outputs are out of date, runs them, publishes their outputs
``processes``           child processes
``outputs``             what they made
``every_assert``        runs a script to its end whatever fails: for recordings, and under other versions
``notebook``            the first cell of an example's notebook
``sphinx_gallery_api``  the only module that calls into sphinx-gallery's internals
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    set_up(app, __name__, "build_guard", "build_step")
