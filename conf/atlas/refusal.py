"""How a build is refused: with a message that says why and the way out, and nothing around it.

For an exception, Sphinx prints a traceback, a list of versions and the last messages, and asks to report a bug to Sphinx. What
an author or a maintainer has to do would drown in that.
"""

from __future__ import annotations


class Refusal(SystemExit):
    """Ends the build with a message and exit status 1.

    Sphinx wraps and prints what is an ``Exception``. ``SystemExit`` is none, and Python prints its message alone. Raise it in
    handlers of ``config-inited`` and ``builder-inited``. A handler of ``build-finished`` logs an error and sets
    ``app.statuscode`` instead, so that those after it are called as well.
    """

    def __init__(self, message: str) -> None:
        super().__init__(f"\nERROR: {message}")
