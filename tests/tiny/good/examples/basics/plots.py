"""
Plots
=====

Matplotlib figures and their alternative texts.
"""

import matplotlib.pyplot as plt

# figure: A straight line
#   that rises from 1 to 2

figure, axes = plt.subplots()
axes.plot([1, 2])
axes.set_title("A line")
print("one figure")

# %%
# Two figures of one cell, each with its own text.

# figure: The first of two falls
# figure: The second of two is flat

for number, height in enumerate([0, 2]):
    figure, axes = plt.subplots()
    axes.plot([2, height])
    figure.suptitle(f"Figure {number}")
