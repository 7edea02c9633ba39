"""
No assert
=========

There is nothing to say about checks at the end of this page.
"""

print("no assert")
