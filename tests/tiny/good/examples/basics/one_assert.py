"""
One assert
==========

The sentence at the end is about one statement.
"""

total = 1 + 1
assert total == 2
