"""What happens to a page once its source is there: directives, folding, math, checks of the sources.

Each module is a Sphinx extension of its own with a ``setup``, and is switched on by its name in ``conf.py``.
"""
