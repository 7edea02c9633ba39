"""What happens while sphinx-gallery runs an example.

``comments`` reads what a cell asks for, ``graph_figures`` and ``plots`` answer it, ``varying`` marks what may differ between
builds, ``claims`` counts the asserts, ``clean_start`` undoes what the script before has changed.
"""
