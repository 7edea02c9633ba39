"""Directives that draw.

``graph_figure``  a backward graph; ``graph_player`` the controls below it, ``graph_code`` the lines on the page that made its
                  cards, ``graph_live`` what it says when a leaf is changed
``plot_figure``   a drawing of matplotlib's, in the colors of the theme
``memory_cells``  a tensor beside the memory that it reads, to be transposed, sliced and viewed
``svg_source``    how a directive reads the drawing that it names
"""
