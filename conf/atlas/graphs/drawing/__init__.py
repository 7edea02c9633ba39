"""From data to a picture.

``fold``    makes large graphs small
``layout``  where cards and edges stand, by Graphviz
``draw``    the SVG, with the rules of ``graph.css``
"""
