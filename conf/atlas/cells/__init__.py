"""What happens while sphinx-gallery runs an example, cell by cell. No module here is a Sphinx extension: conf.py names them.

``request_comments``  reads what a cell asks for: ``# graph:``, ``# figure:``, ``# varies:``,
                      ``# predict:``
``graph_scraper``     answers ``# graph:`` with a drawing of the backward graph
``node_lines``        knows which line of the script recorded a node, for that drawing
``before_backward``   reads what nodes saved before backward frees it, for that drawing
``assigned_lines``    finds the line of the script that made a variable, for a leaf of that drawing
``plot_scraper``      answers ``# figure:``: matplotlib's figures as SVG, with alternative text
``varying_note``      answers ``# varies:``
``prediction``        answers ``# predict:`` with a question and its answer
``assert_counter``    counts the asserts that ran, and refuses a page with one that did not
``line_watcher``      tells it which lines run, in every thread
``fresh_start``       the site's look for plots, and warnings as errors, for each example
"""
