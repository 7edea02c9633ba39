"""
An exercise at the end of its page
==================================

The page ends with the solution, and then says how many checks passed.
"""

question = "What is 3 + 3?"
assert question

# %%
# Exercise
# --------
# Answer it.
#
# .. solution::
#
# It is six.

print("six")
