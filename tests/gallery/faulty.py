"""The fault table: what can go wrong in an example, where, and what must be said of it."""

from __future__ import annotations

from dataclasses import dataclass

HEAD = '''"""
A page
======

It does something.
"""

import os, signal, subprocess, sys, time, warnings
import torch

'''

HEALTHY = HEAD + "# %%\n# Text.\n\nx = torch.tensor(2.0, requires_grad=True)\nprint(x)\nassert x == 2\n"

#: A page that needs a GPU, in which the CPU stands in for one: its second half, with a drawing, runs only where there is one.
HALVES = (
    HEALTHY + "\n# %%\n# Measured\n# --------\n# Below.\n#\n# .. needs-a-gpu::\n\n"
    "y = x * 21\nprint(y)\n# graph: y -- One node, and its edge leads to x\nassert y == 42\n"
)


@dataclass(frozen=True, slots=True)
class Faulty:
    name: str
    code: str
    says: str
    at: str
    """How the line begins that must be named."""
    head: str = HEAD

    @property
    def source(self) -> bytes:
        return (self.head + self.code).encode("utf-8", "surrogateescape")

    @property
    def line(self) -> int:
        lines = (self.head + self.code).split("\n")
        (number,) = (number for number, text in enumerate(lines, 1) if text.startswith(self.at))
        return number


NO_END = "did not end within"
MEMORY, RUNNING = "needs more memory than a page may take", "leaves a process running"
DEAF = "signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())\n"
CELL, BARE, UNTITLED = "\n# %%\n# Text.\n\n", "a page begins with a docstring", '"""\n"""\n\nimport torch\n'
GRAPH = "y = 2 * torch.ones((), requires_grad=True)\n# graph: yy -- A graph\n"

# A loop without end stands on one line: on two, the moment at which it is stopped would decide which of them is named.
FAULTY = [
    Faulty("raises", "x = torch.ones(2)\nx.backward()\n", "element 0 of tensors does not require grad", "x.backward"),
    Faulty("raises_in_a_later_cell", f"x = 1\n{CELL}y = x / 0\n", "ZeroDivisionError", "y = x / 0"),
    Faulty("fails_an_assert", "assert 1 + 1 == 3\n", "AssertionError", "assert 1 + 1"),
    Faulty(
        "never_reaches_an_assert", "if x := 0:\n    assert (\n        x)\n", "this assert never ran", "    assert ("
    ),
    Faulty("exits", "sys.exit(0)\n", "sys.exit(0)", "sys.exit"),
    Faulty("exits_at_once", "os._exit(0)\n", "exit code 0 before the page was finished", "os._exit"),
    Faulty("segfaults", "os.kill(os.getpid(), signal.SIGSEGV)\n", "killed by SIGSEGV", "os.kill"),
    Faulty("is_killed", "x = 1\nos.kill(os.getpid(), signal.SIGKILL)\n", "killed by SIGKILL", "os.kill"),
    Faulty("computes_without_end", "while True: pass\n", f"{NO_END} 2 s of CPU time", "while True"),
    Faulty("computes_deaf", f"{DEAF}while True: pass\n", f"{NO_END} 2 s of CPU time", "while True"),
    Faulty("hangs", "x = 1\ntime.sleep(1000)\n", f"{NO_END} 10 s", "time.sleep"),
    Faulty("hangs_deaf", f"{DEAF}time.sleep(1000)\n", f"{NO_END} 10 s", "time.sleep"),
    Faulty("prints_without_end", "while True: print('x' * 1000)\n", f"{NO_END} 2 s of CPU time", "while True"),
    Faulty("writes_past_python", "while True: os.write(1, b'x' * 10000)\n", "more than 200,000 bytes", "while True"),
    Faulty("needs_too_much_memory", "x = torch.ones(2**29)\n", MEMORY, "x = torch.ones"),
    Faulty("needs_too_much_in_python", "x = bytearray(2**31)\n", MEMORY, "x = bytearray"),
    Faulty("leaves_a_process", "p = subprocess.Popen(['sleep', '1000'])\n", RUNNING, "p = subprocess"),
    Faulty("warns", "warnings.warn('old', DeprecationWarning)\n", "DeprecationWarning: old", "warnings.warn"),
    Faulty("writes_a_file", "open('data.bin', 'w').close()\n", "a file beside the script: data.bin", "import os"),
    Faulty("has_no_syntax_later", f"x = 1\n{CELL}y = )\n", "SyntaxError: unmatched", "y = )"),
    Faulty("is_indented_wrongly", "x = 1\n  y = 2\n", "IndentationError: unexpected indent", "  y = 2"),
    Faulty("has_a_mark", "x = 1\n", "save it as UTF-8 without BOM", "", head=f"\ufeff{HEAD}"),
    Faulty("is_empty", "", BARE, "", head=""),
    Faulty(
        "asks_for_no_time", "# sphinx_gallery_time_limit = a minute\nx = 1\n", "write a positive number", "# sphinx"
    ),
    Faulty("is_not_utf8", "x = 1\ny = '\udcff'\n", "not UTF-8", "y = "),
    Faulty("has_no_title", "x = 1\n", "the docstring with its title", "", head=UNTITLED),
    Faulty("has_no_docstring", "x = 1\n", BARE, "", head="import torch\n"),
    Faulty("asks_for_input", "input()\n", "input()", "input()"),
    Faulty("misspells_a_graph", GRAPH, "did you mean 'y'?", "# graph"),
    Faulty("names_no_variable", GRAPH.replace("yy", "2y"), "the script has no variable '2y'", "# graph"),
    Faulty("predicts_a_statement", "# predict: x = 1 -- What?\n", "SyntaxError: invalid syntax", "# predict"),
]
