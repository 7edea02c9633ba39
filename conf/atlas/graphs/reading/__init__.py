"""From ``grad_fn`` to data.

``read``      cards and edges
``order``     in which the engine runs the nodes
``operands``  with what numbers nodes computed
``program``   what computes the graph again from its leaves
"""
