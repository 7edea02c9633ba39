"""Runs the examples, each in a process of its own, and fills sphinx-gallery's cache with what they made.

``run.py`` is what a build calls. The way of one example: ``scripts`` finds it, ``process`` forks and runs it by sphinx-gallery
(``sphinx_gallery_patches``), ``asserts`` and ``scrapers`` look on, ``cache`` publishes what came of it.
"""
