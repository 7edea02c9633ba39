"""Measure another version of PyTorch. ``conf/compare_versions.py`` does, in the order of this list.

``environment``   an environment for each version, installed once
``everything``    runs there, by ``python -m atlas.versions.measuring``: it asks the three below, and the probes
``examples``      runs each example to its end, cell by cell
``then_and_now``  runs each row of then-and-now by itself
``compare``       what differs from the build's own PyTorch
``summary``       the same in words
"""
