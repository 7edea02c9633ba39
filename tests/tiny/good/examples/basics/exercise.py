"""
An exercise
===========

Its solution is folded away.
"""

question = "What is 2 + 2?"
print(question)

# %%
# Exercise
# --------
# Answer the question.
#
# .. solution::
#
# The text of the solution.

answer = 2 + 2
print("The answer is", answer)
assert answer == 4

# predict: answer -- What is 2 + 2?

# %%
# More text of the solution, with :math:`2 + 2`.

print("the last output of the solution")

# %%
# What comes next
# ---------------
# Not a part of the solution.
