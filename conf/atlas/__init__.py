"""What Autograd Atlas adds to Sphinx and sphinx-gallery.

============= =========================================================================================
``graphs``    reads a backward graph into plain data and draws it; knows nothing of Sphinx
``gallery``   what happens while an example runs: comments that ask for figures, checks, clean starts
``runner``    runs each example in a process of its own and keeps what it made
``operators`` probes PyTorch's own operators; knows nothing of Sphinx
``pages``     what happens to a page after that: directives, folding, math, checks of the sources
============= =========================================================================================

Each module is one concern. ``conf.py`` switches on the extensions, which are ``pages``'s and ``runner.extension``, and names
the scrapers of ``gallery``; all else is called by these.
"""
