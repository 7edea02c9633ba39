"""Backward graphs as data, in words and as drawings. Nothing here knows Sphinx or this site; torch is needed only to read.

``model``     the data, and its form in JSON
``read``      fills it from ``grad_fn``; ``nodes`` asks a node, ``program`` finds what computes the graph again
``fold``      makes a large graph small
``draw``      the drawing; ``picture`` a small one
``describe``  the rows of a table, and how numbers are written
``play``      forward and backward, one node after the other, and all that a figure says
``rules``     what each operation computes, forward and backward, also as JavaScript
"""
