"""
Find nothing changed
====================

The same cells, after the page that changes everything.
"""

import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import torch

print("dtype and device:", torch.get_default_dtype(), torch.get_default_device())
print("grad mode, anomaly mode:", torch.is_grad_enabled(), torch.is_anomaly_enabled())
print("deterministic:", torch.are_deterministic_algorithms_enabled())
print("seed of another page:", torch.initial_seed() == 1234)

# %%
# Warnings are errors.

try:
    warnings.warn("look out", stacklevel=1)
    print("no error")
except UserWarning as warning:
    print("error:", warning)

# %%
# How numbers are drawn and printed, and how many threads compute.

print(mpl.rcParams["lines.linewidth"], mpl.rcParams["figure.facecolor"])
print(torch.tensor(1 / 3), np.array([1 / 3]), pd.Series([1 / 3]).to_list())
print(pd.get_option("display.max_rows"), "rows")
print(torch.get_num_threads(), "threads")
