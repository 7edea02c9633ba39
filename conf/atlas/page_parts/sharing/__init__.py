"""What is said and shown of a page elsewhere.

``description``     what a search engine or a shared link says
``shared_picture``  what a shared link shows: the page's title and its first figure
``picture_card``    draws that
"""
