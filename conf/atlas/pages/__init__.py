"""What happens to a page once its source is there: directives, folding, math, checks of the sources.

A module with a ``setup`` is a Sphinx extension of its own, and is switched on by its name in ``conf.py``. The others are what
these share, or what is large enough to stand alone.
"""
