"""What stands below a page's text.

``edit_link``       "edit this page" leads to the script of an example
``colab_link``      opens an example's notebook in Google Colab
``install_line``    what to install to run an example on one's own machine
``example_footer``  where sphinx-gallery's downloads are, for parts that stand before them
``report_link``     opens an issue about the page, or about what the reader points at
``scope_line``      which code and tensors its sentences are about
``built_line``      what the page was built from
"""
