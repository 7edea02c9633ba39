"""No build is published while a sentence of a template is left in a page. Any other build names each, and goes on.

So an author sees the page grow, and the tests run on it. What is published is a release (``--release``), or names its commit.
"""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

from atlas.toolbox import Refusal

from .to_write import report

logger = logging.getLogger(__name__)


def look(app: Sphinx) -> None:
    """Name what is still to be written. Connected to ``builder-inited``, before the examples run.

    :raises Refusal: if the build is to be published.
    """
    found = report(Path(app.srcdir, app.config.sphinx_gallery_conf["examples_dirs"]).resolve())
    if found and (app.config.atlas_release or app.config.atlas_commit):
        lines = "\n".join(f"  {sentence}" for sentence in found)
        raise Refusal(
            f"a page is published when nothing in it is the template's; write these, or remove them:\n{lines}"
        )
    for sentence in found:
        logger.info("still the template's: %s", sentence)


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", look, priority=498)
