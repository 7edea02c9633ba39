"""Backward graphs as data, in words and as drawings. Nothing here knows Sphinx or this site; torch is needed only to read.

``model``      the data, and its form in JSON
``read``       fills it from ``grad_fn``; ``order``, ``operands`` and ``program`` help
``fold``       makes a large graph small
``draw``       the drawing; ``layout`` says where things stand
``describe``   the rows of a table; ``numbers``: how numbers are written
``steps``      forward and backward, one node after the other
``rules``      what each operation computes; ``card_rules`` with the names of the script, ``javascript`` for a browser
``figure_data``  all that a figure can be asked; ``live_data`` for one whose leaves can be changed
"""
