"""What is said of a page elsewhere.

``description``  what a search engine or a shared link says
"""
