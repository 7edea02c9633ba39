"""``nox -s new`` makes a page's script that runs, and knows what of it is still to be written.

``templates``  the script of a new page, from the ``.txt`` files beside this one
``places``     the page's place in the reading order, and the links to it from the pages before and after
``make``       both at once, or nothing and the reason why not
``to_write``   the sentences of a script that are still the template's
``publish``    no build with such a sentence is published
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    from . import publish

    publish.setup(app)
