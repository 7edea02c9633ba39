r"""
Which operations copy a tensor, and which share its memory
==========================================================

Some operations on a tensor return the tensor itself, some return another tensor on the same memory, and some copy.
The difference decides how much memory a program takes, and whether a write into the result also changes the original.
This page runs more than seventy calls and measures what each one does. No cell of its tables is typed by hand.
"""

# %%
# Two inputs, the same values
# ---------------------------
# A tensor is a block of memory (its *storage*) and a rule for reading it (its *strides*: how far to step in memory
# for one step along each dimension). Whether an operation copies can depend on the strides, so every operation is
# run on two tensors: one stored row by row, and one with the same shape and the same values, stored column by
# column.

from contextlib import suppress

import matplotlib.pyplot as plt
import pandas as pd
import torch
from torch.autograd.profiler import profile, record_function

LAYOUTS = ("contiguous", "transposed")


def make(layout):
    values = torch.arange(24.0).reshape(4, 6)
    if layout == "transposed":
        values = values.t().contiguous().t()
    # a clone keeps the strides, and is a view of nothing
    return values.clone().requires_grad_()


# %%
# The first numbers in memory show the difference.

for layout in LAYOUTS:
    x = make(layout)
    memory = x.detach().as_strided((24,), (1,)).tolist()
    print(f"{layout}: shape {tuple(x.shape)}, strides {x.stride()}")
    print(f"    is_contiguous {x.is_contiguous()}, in memory {memory[:5]} ...")

# sphinx_gallery_start_ignore
assert make("contiguous").stride() == (6, 1) and make("transposed").stride() == (1, 4)
assert torch.equal(make("contiguous"), make("transposed"))
assert not make("contiguous")._is_view() and not make("transposed")._is_view()
# sphinx_gallery_end_ignore

# %%
# How each operation is measured
# ------------------------------
# An operation is a piece of Python text. It is run on a fresh input ``x``, and its result ``y`` is asked about its
# memory.


def address(tensor):
    return tensor.untyped_storage().data_ptr()


def ask(x, y):
    return {
        "same object": y is x,
        "shares storage": address(y) == address(x),
        "is view": y._is_view(),
        "contiguous": y.is_contiguous(),
        "strides before": x.stride(),
        "strides after": y.stride(),
        "grad_fn": y.grad_fn.name() if y.grad_fn else "none",
    }


# %%
# The last test is the one that matters to a program: write into one element of the result, then look at the input.
# Here is what one call answers.

NAMES = {"torch": torch, "like": torch.zeros(4, 6), "rows": torch.tensor([0, 2])}


def measure(expression, layout):
    x = make(layout)
    before = x.detach().clone()
    try:
        y = eval(expression, NAMES | {"x": x})
    except RuntimeError:
        return {"strides before": x.stride()}
    found = ask(x, y)
    with torch.no_grad():
        y[(0,) * y.dim()] = 99
    return found | {"write seen": not torch.equal(x, before)}


for name, value in measure("x.t()", "contiguous").items():
    print(f"{name:<15} {value}")

# %%
# These are the calls. ``like`` is another tensor of the same shape, and ``rows`` holds the indices 0 and 2. Where a
# call returns several tensors, ``[0]`` takes the first.

OPERATIONS = """
x.view(24); x.view(2, 2, 6); x.view_as(like); x.view(torch.int32); x.reshape(24);
x.reshape(2, 2, 6); x.reshape_as(like); x.flatten(); x.flatten(1); x.ravel();
x.unflatten(1, (2, 3)); x.unsqueeze(0); x.squeeze(); x[:1].squeeze(0);
x.expand(3, 4, 6); x.expand_as(like); x.broadcast_to((3, 4, 6)); x.transpose(0, 1);
x.permute(1, 0); x.swapaxes(0, 1); x.movedim(0, 1); x.t(); x.T; x.mT;
x.narrow(0, 1, 2); x.select(0, 1); x[1]; x[1:3]; x[:, ::2]; x[...]; x[None];
x.split(2)[0]; x.chunk(2)[0]; x.unbind()[0]; x.tensor_split(3)[0]; x.diagonal();
x.unfold(1, 3, 1); x.as_strided((2, 3), (1, 2)); x[rows]; x[rows[0]]; x[[0, 2]];
x[x > 5]; x.index_select(0, rows); x.take(rows); x.masked_select(x > 5); x.diag();
x.tril(); x.contiguous(); x.clone(); x.detach(); x.data; x.real; x.cpu(); x.to("cpu");
x.to(torch.float32); x.to(torch.float64); x.to(torch.float32, copy=True); x.float();
x.double(); x.int(); x.type_as(like); x.repeat(1, 1); x.repeat_interleave(1, 0);
x.tile(1, 1); torch.cat([x]); torch.stack([x]); x.flip(0); x.roll(1); x.rot90();
torch.atleast_2d(x); torch.broadcast_tensors(x, like)[0]; torch.einsum("ij->ji", x);
x.sum_to_size(4, 6); torch.dropout(x, 0.5, False)
"""
operations = [call.strip() for call in OPERATIONS.split(";")]
print(len(operations), "calls")

# sphinx_gallery_start_ignore
assert len(operations) == len(set(operations)) > 70
# sphinx_gallery_end_ignore

# %%
# Each call is measured on both inputs. Where the two answers agree, the table shows one. Otherwise it shows
# *contiguous input / transposed input*.

pd.set_option("display.max_rows", None)
WORDS = {True: "yes", False: "no"}


def both(call):
    contiguous, transposed = (measure(call, layout) for layout in LAYOUTS)
    row = {}
    for key, value in contiguous.items():
        pair = (value, transposed.get(key, "raises"))
        words = [WORDS.get(answer, str(answer)) for answer in pair]
        row[key] = " / ".join(dict.fromkeys(words))
    return row


def tabulate(calls):
    rows = [both(call) for call in calls]
    return pd.DataFrame(rows, index=calls).rename_axis(columns="operation")


# %%
# When an operation copies follows from one column: does the result share its storage with ``x``?

table = tabulate(operations)
WHEN = {
    "yes": "never",
    "no": "always",
    "yes / no": "if strides do not fit",
    "yes / raises": "never, it raises",
}
table.insert(0, "copies", table["shares storage"].map(WHEN))

assert (table["write seen"] == table["shares storage"]).all()
print(table["copies"].value_counts().to_string())

# sphinx_gallery_start_ignore
assert table.notna().all(axis=None)
# sphinx_gallery_end_ignore

# %%
# The assertion holds for every call: a write is seen exactly where the storage is shared. The tables that follow are
# parts of this one measurement.
#
# It depends on the strides
# -------------------------
# These are the calls to be careful with. ``view`` never copies, so it has to raise where no strides can describe the
# new shape. ``reshape``, ``flatten`` and ``ravel`` return a view where that is possible and a copy where it is not,
# and nothing in the code tells you which. ``contiguous`` copies unless the tensor is contiguous already.

# sphinx_gallery_start_ignore
_depends = [e for e in operations if table.loc[e, "copies"] == "if strides do not fit"]
assert _depends == ["x.reshape(24)", "x.flatten()", "x.ravel()", "x.contiguous()"]
assert table.index[table["copies"] == "never, it raises"].tolist() == ["x.view(24)"]
# sphinx_gallery_end_ignore
table.loc[
    table["copies"].str.contains("strides|raises"),
    ["same object", "shares storage", "strides after"],
]

# %%
# The shape asked for matters as much as the input. ``x.reshape(2, 2, 6)`` only splits a dimension, which strides can
# always describe: it is in the next table but one, and so is ``x.view(2, 2, 6)``. The exact rule is about strides
# that can be merged, not about being contiguous; the exercise below comes back to it.
#
# Nothing to do: the tensor itself
# --------------------------------
# No new tensor is made. The result *is* ``x``, so any change to it, such as ``requires_grad_()``, is a change to
# ``x``. Conversions are here when there is nothing to convert, and so is dropout when it is switched off.

itself = table["same object"] == "yes"

# sphinx_gallery_start_ignore
_itself = set(table.index[itself])
assert {"x.to(torch.float32)", "x.float()", "torch.dropout(x, 0.5, False)"} <= _itself
assert (table.loc[itself, "copies"] == "never").all()
# sphinx_gallery_end_ignore
table.loc[itself, ["same object", "write seen", "grad_fn"]]

# %%
# Always the same memory, another tensor
# --------------------------------------
# The result has its own shape and strides. Basic indexing (integers, slices, ``None``, ``...``) is here, and an
# index tensor with no dimension counts as an integer: ``x[rows[0]]``. ``squeeze()`` makes a new view even when there
# is nothing to squeeze. A stride of 0, as ``expand`` makes it, reads the same memory again and again.

# sphinx_gallery_start_ignore
_shared = set(table.index[(table["copies"] == "never") & ~itself])
assert {"x.squeeze()", "x[rows[0]]", "x[1]", "x[1:3]", "x[None]", "x[...]"} <= _shared
assert {"x.view(2, 2, 6)", "x.reshape(2, 2, 6)"} <= _shared
assert table.loc["x.expand(3, 4, 6)", "strides after"] == "(0, 6, 1) / (0, 1, 4)"
# sphinx_gallery_end_ignore
table.loc[(table["copies"] == "never") & ~itself, ["strides after", "grad_fn"]]

# %%
# Always a copy
# -------------
# Advanced indexing (a list, an index tensor, a mask) can pick elements in any order, which strides cannot describe.
# ``repeat``, ``tile`` and ``cat`` copy even when there is one piece and nothing to repeat. Look at the strides: some
# copies keep the layout of a transposed input, ``(1, 4)``, and others return rows, ``(6, 1)``.

# sphinx_gallery_start_ignore
_copies = set(table.index[table["copies"] == "always"])
assert {"x[rows]", "x[[0, 2]]", "x[x > 5]"} <= _copies
assert {"x.repeat(1, 1)", "x.tile(1, 1)", "torch.cat([x])"} <= _copies
assert table.loc["x.clone()", "strides after"] == "(6, 1) / (1, 4)"
assert table.loc["x.repeat(1, 1)", "strides after"] == "(6, 1)"
# sphinx_gallery_end_ignore
table.loc[table["copies"] == "always", ["strides after", "grad_fn"]]

# %%
# Sharing memory is not the same as being a view
# ----------------------------------------------
# ``_is_view()`` tells whether autograd keeps a link from the result to a base. Leave aside the calls that return
# ``x`` itself. Of the others, five show that this is not the same as sharing memory with ``x``.

# sphinx_gallery_start_ignore
_odd = (table["shares storage"] != table["is view"]) & (table["same object"] == "no")
_odd = set(table.index[_odd])
assert len(_odd) == 5 and {"x.ravel()", "x.repeat_interleave(1, 0)"} <= _odd
assert {"x.view(torch.int32)", "x.detach()", "x.data"} <= _odd
_hidden = make("transposed").ravel()
assert _hidden._is_view() and _hidden._base.grad_fn.name() == "CloneBackward0"
# sphinx_gallery_end_ignore
odd = (table["shares storage"] != table["is view"]) & (table["same object"] == "no")
table.loc[odd, ["shares storage", "is view", "grad_fn"]]

# %%
# ``detach``, ``.data`` and a view as integers share the memory and leave autograd: no link is kept. ``ravel`` of the
# transposed input is the opposite case, and so is ``repeat_interleave``. They copy, then return a view *of the
# copy*, which you never see. To learn whether two tensors share memory, compare ``untyped_storage().data_ptr()``.
#
# contiguous and clone
# --------------------
# Both can copy, for different reasons. ``contiguous()`` wants rows, and returns the tensor itself if it has them.
# ``clone()`` wants new memory, and keeps the order of the strides: the clone of a transpose is still not contiguous.

x = make("contiguous")
assert x.contiguous() is x

trap = "x.t().to(memory_format=torch.contiguous_format)"
for call in ("x.t()", "x.t().clone()", "x.t().contiguous()", trap):
    y = eval(call)
    print(f"{call:<48} strides {y.stride()}   contiguous {y.is_contiguous()}")

# sphinx_gallery_start_ignore
assert x.t().clone().stride() == (1, 6) and x.t().contiguous().stride() == (4, 1)
_t = x.t()
assert _t.to(memory_format=torch.contiguous_format) is _t
# sphinx_gallery_end_ignore

# %%
# The last line is a trap (`pytorch#62027 <https://github.com/pytorch/pytorch/issues/62027>`__): ``to`` with
# ``torch.contiguous_format`` returned the transpose as it was. Call ``contiguous()``.
#
# The figure walks through each tensor in reading order, row after row, and shows where in its storage every element
# lies. A straight line is a contiguous tensor.

# figure: Four panels, position in storage against element in reading order. x is a straight line. x.t() is a zigzag
#   on the storage of x. x.t().clone() is the same zigzag on new storage. x.t().contiguous() is a straight line on new
#   storage.
fig, axes = plt.subplots(2, 2, figsize=(7, 5), sharex=True, sharey=True)
calls = ("x", "x.t()", "x.t().clone()", "x.t().contiguous()")
styles = {
    True: ("storage of x", "o-", "#2563eb"),
    False: ("new storage", "s--", "#1e293b"),
}
for ax, call in zip(axes.flat, calls, strict=True):
    y = eval(call)
    where, line, color = styles[address(y) == address(x)]
    places = torch.arange(24).as_strided(y.shape, y.stride()).flatten()
    ax.plot(places, line, color=color, markersize=4, linewidth=0.8)
    ax.set_title(f"{call}\n{where}, strides {y.stride()}", fontsize=10)
fig.supxlabel("element, in reading order")
fig.supylabel("position in its storage")
fig.suptitle("Where each element lies in memory")
fig.set_layout_engine("constrained")

# sphinx_gallery_start_ignore
_shared = [address(eval(_call)) == address(x) for _call in calls]
assert _shared == [True, True, False, False]
del y, places
# sphinx_gallery_end_ignore

# %%
# Copying does not leave the graph
# --------------------------------
# Memory and graph are two different questions. ``clone`` copies and is differentiable; ``detach`` shares the memory
# and is not recorded. For a copy outside the graph you need both.

mix = tabulate(["x.t()", "x.clone()", "x.detach()", "x.detach().clone()"])

# sphinx_gallery_start_ignore
assert mix["shares storage"].tolist() == ["yes", "no", "yes", "no"]
assert mix["grad_fn"].tolist() == ["TBackward0", "CloneBackward0", "none", "none"]
# sphinx_gallery_end_ignore
mix[["shares storage", "grad_fn"]]

# %%
# A view and a copy are nodes like any other, and the gradient passes through both.

x = make("contiguous")
view = x.t()
copy = view.clone()
total = copy.sum()
total.backward()

# graph: total -- One view and one copy: both are recorded, and the gradient of x has passed through both

print("view:", view.grad_fn.name())
print("copy:", copy.grad_fn.name())
print("x.grad is all ones:", bool((x.grad == 1).all()))

# sphinx_gallery_start_ignore
assert torch.equal(x.grad, torch.ones(4, 6)) and copy.grad_fn.name() == "CloneBackward0"
# sphinx_gallery_end_ignore

# %%
# What PyTorch's own schemas say
# ------------------------------
# Every operator has schemas, one for each overload. ``Tensor(a) self`` and ``-> Tensor(a)`` say that the result may
# share memory with the input; a plain ``-> Tensor`` says that it is new. The function that lists them is not
# documented.

schemas_of = torch._C._jit_get_schemas_for_operator


def may_share(operator):
    answers = set()
    for schema in schemas_of(operator):
        first, last = schema.arguments[0], schema.arguments[-1]
        if "Tensor" in str(first.type) and not last.is_out:
            answers.add(any(result.alias_info is not None for result in schema.returns))
    (answer,) = answers  # all overloads agree
    return answer


for name in ("transpose", "clone", "reshape", "contiguous", "type_as"):
    print(schemas_of(f"aten::{name}")[0])

# sphinx_gallery_start_ignore
_names = ("transpose", "clone", "reshape", "type_as")
assert [may_share(f"aten::{_name}") for _name in _names] == [True, False, True, False]
# sphinx_gallery_end_ignore

# %%
# Do they hold? The profiler tells which operator each call entered, and which operators that one called in turn.


def trace(layout):
    with profile() as recorded:
        for call in operations:
            names = NAMES | {"x": make(layout)}
            with record_function(call), suppress(RuntimeError):
                eval(call, names)
    events = [event for event in recorded.function_events if event.name in operations]
    return {event.name: event.cpu_children for event in events}


on_contiguous, on_transposed = map(trace, LAYOUTS)

# %%
# Compare the schema of the operator with what was measured, where a call enters one operator and no more.

entered = {}
for call in operations:
    events = on_contiguous[call] or on_transposed[call]
    if len(events) == 1:
        entered[call] = events[0].name

sharing = {call: may_share(operator) for call, operator in entered.items()}
never = table["copies"].str.startswith("never")
differ = [call for call in entered if sharing[call] != never[call]]
print(f"{len(entered)} calls enter exactly one operator.")
print(f"{len(differ)} of them differ from its schema.")

# sphinx_gallery_start_ignore
_has = torch._C._dispatch_has_kernel_for_dispatch_key
for _call in differ:
    _operator = entered[_call]
    _packet = getattr(torch.ops.aten, _operator.removeprefix("aten::"))
    for _overload in _packet.overloads():
        if _overload.startswith(("prim", "sublist")) or _overload.endswith("out"):
            continue
        _full = _operator + ("" if _overload == "default" else f".{_overload}")
        assert _has(_full, "CompositeImplicitAutograd"), _full
# sphinx_gallery_end_ignore

# %%
# Here they are, with the operators that were called inside.


def inside(call):
    texts = []
    for traced in (on_contiguous, on_transposed):
        children = [child.name for e in traced[call] for child in e.cpu_children]
        texts.append(", ".join(children).replace("aten::", "") or "nothing")
    return " / ".join(dict.fromkeys(texts))


against = pd.DataFrame(index=differ).rename_axis(columns="operation")
against["schema"] = ["may share" if sharing[call] else "new" for call in differ]
against["shares storage"] = table["shares storage"]
against["calls inside"] = [inside(call) for call in differ]

# sphinx_gallery_start_ignore
assert inside("x.reshape(24)") == "view / clone, _unsafe_view"
assert inside("x.type_as(like)") == "to"
assert set(against.loc[against["schema"] == "new", "shares storage"]) == {"yes"}
_may = against.loc[against["schema"] == "may share", "shares storage"]
assert set(_may) == {"no", "yes / no"}
# sphinx_gallery_end_ignore
against

# %%
# Where the schema says *may share*, the result is a copy, sometimes or always: *may* is all it promises. Where the
# schema says *new*, the result is ``x`` or a view of it, and the schema does not tell. All of these operators are
# *composite*: they are written as calls of other operators, or return ``x`` and call nothing. No operator of the
# other kind is in this table. So trust the schema of an operator that is not composite, and measure one that is.
#
# The last column also explains the copy that was marked as a view: ``reshape`` ends its copy with ``_unsafe_view``,
# which leaves no link, and ``ravel`` ends it with ``view``, which does.
#
# The whole table
# ---------------
# One row for each call in alphabetical order, all properties. Two values with a slash are for the contiguous and for
# the transposed input.

table.sort_index()

# %%
# What people get wrong
# ---------------------
# **view after transpose.** No strides can describe the flat shape, and ``view`` never copies, so it raises.

x = make("contiguous").detach()

try:
    x.t().view(24)
except RuntimeError as error:
    print(f"RuntimeError: {error}")
    assert "view size is not compatible" in str(error)

# %%
# ``reshape`` is the way out where a copy is welcome. It is the wrong way out where you go on to write.
#
# **Writing through reshape.** This function is meant to clear the first six elements of its argument. Whether it
# does depends on how the argument was made, and nothing is reported.


def clear_six(matrix):
    matrix.reshape(-1)[:6] = 0


for layout in LAYOUTS:
    x = make(layout).detach()
    clear_six(x)
    print(f"{layout}: first row {x[0].tolist()}")

# sphinx_gallery_start_ignore
assert make("transposed").detach()[0].tolist() == x[0].tolist() == [0, 1, 2, 3, 4, 5]
_x = make("contiguous").detach()
clear_six(_x)
assert not _x[0].any() and _x[1:].all()
# sphinx_gallery_end_ignore

# %%
# The second call wrote into a copy and threw it away. Use ``view`` where you mean to write: it shares or it raises.
# Better still, index the tensor itself, as in ``matrix[0] = 0``.
#
# **Writing through two indexings.** ``x[mask]`` on its own is a copy, so a second index writes into the copy. One
# assignment with one index writes into ``x``.

x = make("contiguous").detach()
x[x > 20][:2] = 0
print("x[x > 20][:2] = 0 leaves", x[-1].tolist())
x[x > 20] = 0
print("x[x > 20] = 0     leaves", x[-1].tolist())

# sphinx_gallery_start_ignore
assert x[-1].tolist() == [18, 19, 20, 0, 0, 0]
# sphinx_gallery_end_ignore

# %%
# Exercise
# --------
# ``x`` is contiguous, with shape ``(4, 6)`` and strides ``(6, 1)``. Which of these five share memory with it?
# ``x[:2].reshape(12)``, ``x[:, :3].reshape(12)``, ``x[:, ::2].reshape(12)``, ``x.t().reshape(24)`` and
# ``x.t().t().reshape(24)``.
#
# .. solution::
#
# A flat result needs one step from each element to the next. The first two rows lie one after the other: step 1.
# Every second column gives steps of 2 within a row, and from the last one taken to the next row it is 2 as well, so
# this shares memory though it is not contiguous. The first three columns leave a gap after each row, so they are
# copied. A transpose mixes steps of 6 with jumps back, and a second transpose undoes the first.

calls = ["x[:2].reshape(12)", "x[:, :3].reshape(12)", "x[:, ::2].reshape(12)"]
calls += ["x.t().reshape(24)", "x.t().t().reshape(24)"]

answers = []
for call in calls:
    answers.append(measure(call, "contiguous")["shares storage"])
    print(f"{call:<23} shares storage: {answers[-1]}")
assert answers == [True, False, True, False, True]

# sphinx_gallery_start_ignore
pd.reset_option("display.max_rows")
# sphinx_gallery_end_ignore

# %%
# See also
# --------
# - Before: :ref:`sphx_glr_gallery_functions_functions_and_transforms.py`, custom Functions under ``vmap`` and ``jvp``.
# - Next: :ref:`sphx_glr_gallery_tensors_strides.py`, the rule that decides whether a view is possible.
# - :ref:`sphx_glr_gallery_graphs_leaves_and_roots.py`, why a view or a copy of a leaf is not a leaf.
# - In PyTorch's reference: `Tensor views <https://docs.pytorch.org/docs/stable/tensor_view.html>`__, the list of
#   operations that are meant to return views.
# - `torch.Tensor.reshape <https://docs.pytorch.org/docs/stable/generated/torch.Tensor.reshape.html>`__, and what it
#   promises about copies.
