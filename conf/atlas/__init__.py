"""What Autograd Atlas adds to Sphinx and sphinx-gallery.

========== =========================================================================================
``graphs``  reads a backward graph into plain data and draws it; knows nothing of Sphinx
``gallery`` what happens while an example runs: comments that ask for figures, checks, clean starts
``pages``   what happens to a page after that: directives, folding, math, checks of the sources
========== =========================================================================================

Each module is one concern, and each is named in ``conf.py`` where it is switched on.
"""
