"""What is shown of a page elsewhere.

``shared_picture``  what a shared link shows: the page's title and its first figure
``picture_card``    draws that
"""
