"""The pages as Markdown, for people and for language models. In this order:

``llms_txt``         the pages with a sentence each
``markdown_copies``  each page
``llms_full_txt``    all pages in one file
"""
