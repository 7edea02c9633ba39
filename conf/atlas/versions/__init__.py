"""What other versions of PyTorch do otherwise: measured by ``conf/measure/versions.py``.

``changes``            the data, and what changed
``table_directive``    ``{version-table}``: all changes
``changed_directive``  ``.. torch-changed::`` on a page
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atlas.rooms import set_up

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> None:
    set_up(app, __name__, "table_directive", "changed_directive")
