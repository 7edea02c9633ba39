"""Backward graphs as data, in words and as drawings. Nothing here knows Sphinx or this site; torch is needed only to read.

``model``     the data, and its form in JSON; makes a large graph small
``read``      fills it from ``grad_fn``; ``nodes`` asks a node, ``program`` finds what computes the graph again
``draw``      the drawing, and a small picture
``describe``  the rows of a table, and how numbers are written
``play``      forward and backward, one node after the other, and all that a figure says
``player``    the same as HTML: sentences, notes and controls
``rules``     what each operation computes, forward and backward, also as JavaScript
"""
