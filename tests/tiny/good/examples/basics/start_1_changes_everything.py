"""
Change everything
=================

The state that a script finds, and then everything that it can change for the whole process.
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
threads = torch.get_num_threads()
print(threads, "threads")

# %%
# Change it all.

torch.manual_seed(1234)
torch.use_deterministic_algorithms(True)
torch.set_default_device("meta")
torch.set_printoptions(precision=8)
torch.set_num_threads(threads + 1)
np.set_printoptions(precision=3)
pd.set_option("display.max_rows", 7)
warnings.simplefilter("ignore")
mpl.rcParams["lines.linewidth"] = 17.0
mpl.rcParams["figure.facecolor"] = "red"
