"""What every differentiable operator of PyTorch does with memory and gradients, measured.

``python -m atlas.operators FILE`` probes the operators of PyTorch's own test database and writes what was found to FILE. There
is no Sphinx in here: ``atlas.pages.operator_table`` shows the result. ``probe`` measures one operator, ``sandbox`` runs many
so that a crash costs one, ``report`` keeps the result and knows when it is out of date, and ``probing`` then makes it
anew.
"""
