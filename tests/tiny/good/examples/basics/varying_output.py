"""
An output that varies
=====================

The note above the output says so, and why.
"""

import matplotlib.pyplot as plt
import pandas as pd

# varies: the *time* depends
#   on the machine

print("0.1 s")
pd.DataFrame({"factor": [2.0, 3.0]}).head()

# %%
# Prose is wrapped, what is aligned is not.

print("a message " * 20)

# %%
# Columns:

print("name" + " " * 90 + "calls")

# %%
# A plot.

# varies: the height depends on the machine

# figure: A bar.
plt.bar([1], [0.1])
plt.title("Seconds")
print("0.2 s")
assert plt.gca().patches  # the count of asserts stands after the last cell, before its output
