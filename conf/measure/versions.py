"""What versions of PyTorch answer to the probes of ``probes.toml``, kept in docs/reference/versions.json for the site to show.

    python conf/measure/versions.py 2.14.1 2.4.1     installs these versions and measures them
    python conf/measure/versions.py newest nightly   the newest release that pip finds, and the last build of the main branch
    python conf/measure/versions.py here             the PyTorch that this Python has, after a probe was added

``nox -s versions`` calls it. Each version gets an environment of its own below .nox/versions, of several gigabytes. What a
version does otherwise than the one before it is printed, as Markdown.

In the data each thing has its answer from a version on: ``{"2.4.1": "[1]", "2.14.1": "[0]"}`` says that all versions in between
that were measured answer as 2.4.1. ``null`` stands where a version was not asked, or lacks the thing.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import importlib
import inspect
import itertools
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crash_safe import answer_each

ROOT = Path(__file__).parents[2]
DATA = ROOT / "docs" / "reference" / "versions.json"
PROBES = Path(__file__).with_name("probes.toml")
HOME = ROOT / ".nox" / "versions"
SUBJECTS = ("kinks", "nodes", "warns", "refuses")
#: What of an operator's row a version may change: its error is rounding, and its samples differ.
COLUMNS = ("nodes", "saves", "shares", "output_changed", "input_changed", "second", "forward")

# -- Probes ---------------------------------------------------------------------------------------

LONGEST = 300  # characters of an answer
#: What comes after the first sentence of a message: another one, or where in PyTorch's code or the user's it was said.
_ENDS = re.compile(
    r"(?<=[.!?])\s+(?=[A-Z])|\s*\(?Triggered internally|\s*\[?Error raised from|\s+(?:Explanation|from user code|At): "
)
NAMES = """\
import math, warnings
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.autograd import grad
"""


@dataclass(frozen=True, slots=True)
class Probe:
    """One question of ``probes.toml``, which says what the fields mean."""

    subject: str
    code: str
    at: Sequence[Any] = ()

    @property
    def key(self) -> str:
        """Names the probe in the data, and on the page.

        >>> Probe("kinks", "x.abs()", [[0.0]]).key, Probe("kinks", "x.max(y)", [1.0, 1.0]).key
        ('x.abs() at x = [0]', 'x.max(y) at x = 1, y = 1')
        """
        values = ", ".join(f"{name} = {format_number(value)}" for name, value in zip("xyz", self.at, strict=False))
        return f"{self.code} at {values}" if values else self.code


def read_probes() -> list[Probe]:
    """All probes, subject by subject."""
    groups = tomllib.loads(PROBES.read_text(encoding="utf-8"))
    asked = ((s, group, code) for s in SUBJECTS for group in groups[s] for code in group["ask"])
    return [Probe(s, group.get("begin", "") + code, group.get("at", ())) for s, group, code in asked]


def ask_probes(jobs: int) -> dict[str, dict[str, str]]:
    """What the PyTorch that is here answers: for each subject the keys of its probes, with the answers."""
    import torch  # noqa: F401 -- before the processes are forked, so that they need not

    probes, found = read_probes(), {}
    for subject in SUBJECTS:
        asked = [probe for probe in probes if probe.subject == subject]
        # some warnings are given once in a process; a process for each of the others would take ten times as long
        answers = answer_each(answer_probe, asked, jobs, apart=subject == "warns")
        found[subject] = {probe.key: answer or why for probe, (answer, why) in zip(asked, answers, strict=True)}
    return found


def answer_probe(probe: Probe) -> str:
    """The answer of the PyTorch that is here: one line, the same on each machine.

    To be sure of it, ask each probe in a process of its own: some warnings are said once, and some probes crash.
    """
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.set_warn_always(True)  # what an earlier probe was told, this one is told too
    names: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(NAMES, names)
            caught.clear()
            inputs = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in probe.at]
            names.update(zip("xyz", inputs, strict=False))
            *before, last = probe.code.splitlines()
            exec("\n".join(before), names)
            result = eval(last, names)
            if probe.subject == "kinks":
                total = sum(part.sum() for part in result) if isinstance(result, tuple) else result.sum()
                found = torch.autograd.grad(total.real, inputs, allow_unused=True)
                return ", ".join("none" if g is None else format_number(g.clone().tolist()) for g in found)
            if probe.subject == "nodes":
                return "none" if result.grad_fn is None else result.grad_fn.name()
        except Exception as error:
            return format_message(type(error), str(error))
    if probe.subject == "warns":
        said = [format_message(warning.category, str(warning.message)) for warning in caught]
        return " | ".join(dict.fromkeys(said)) or "no warning"
    return "no error"


def format_number(value: Any) -> str:
    """A number or a list of them with six digits.

    >>> format_number([0.5, -0.0, float("nan")]), format_number(1 / 3)
    ('[0.5, 0, nan]', '0.333333')
    """
    if isinstance(value, Sequence):
        return f"[{', '.join(map(format_number, value))}]"
    return f"{value if isinstance(value, complex) else value + 0.0:.6g}"  # + 0.0 turns -0.0 into 0.0


def format_message(kind: type, message: str) -> str:
    """A category and the first sentence of a message, without addresses and paths.

    >>> format_message(UserWarning, "Old.  Use the new one. See /a/b.py")
    'UserWarning: Old.'
    >>> format_message(UserWarning, "see /a/b.py and https://pytorch.org/a/b, which stays")
    'UserWarning: see .../b.py and https://pytorch.org/a/b, which stays'
    """
    words = " ".join(message.split())
    words = re.sub(r"0x[0-9a-f]{6,}", "0x...", words)
    words = re.sub(r"(?<![\w:/])/[\w./+-]+/", ".../", words)
    return f"{kind.__name__}: {_ENDS.split(words)[0]}"[:LONGEST].strip()


# -- Signatures -----------------------------------------------------------------------------------

#: The public modules that this site is about. Operators written in C++ have no signature that Python can read.
MODULES = (
    *("torch", "torch.amp", "torch.autograd", "torch.autograd.forward_ad", "torch.autograd.functional"),
    *("torch.autograd.graph", "torch.autograd.profiler", "torch.func", "torch.nn", "torch.nn.functional"),
    *("torch.nn.init", "torch.nn.utils", "torch.optim", "torch.optim.lr_scheduler", "torch.profiler"),
    *("torch.utils.checkpoint", "torch.utils.data"),
)


def find_signatures() -> dict[str, str]:
    """The signature of each public function and class of ``MODULES``, by its name; annotations aside."""
    found = {}
    for module in MODULES:
        try:
            there = importlib.import_module(module)
        except ImportError:  # a module of other versions
            continue
        names = getattr(there, "__all__", None) or [name for name in vars(there) if not name.startswith("_")]
        for name in sorted(set(names)):
            thing = getattr(there, name, None)
            if callable(thing) and str(getattr(thing, "__module__", "")).partition(".")[0] == "torch":
                with suppress(TypeError, ValueError):  # where Python cannot tell it
                    found[f"{module}.{name}"] = format_signature(inspect.signature(thing))
    return found


def format_signature(signature: inspect.Signature) -> str:
    """Parameters and defaults.

    >>> format_signature(inspect.signature(lambda x, *, dim=-1: x))
    '(x, *, dim=-1)'
    """
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in signature.parameters.values()]
    text = str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    return re.sub(r" at 0x[0-9a-f]+|(?<=') from '[^']*'", "", text)


# -- A version ------------------------------------------------------------------------------------


def answer_all(jobs: int) -> dict[str, Any]:
    """What the PyTorch that is here answers to everything: ``torch``, ``python``, and each kind of thing."""
    import torch

    import operators

    about = {"torch": torch.__version__.partition("+")[0], "python": platform.python_version()}
    found = {**about, **ask_probes(jobs), "signatures": find_signatures(), "operators": {}}
    try:
        rows, _not_probed = operators.probe_all(jobs)
        found["operators"] = {row["name"]: [row[column] for column in COLUMNS] for row in rows}
    except Exception as error:  # of an old version, whose database of operators is another
        print(f"versions: the operators cannot be probed: {type(error).__name__}: {error}")
    return found


#: What pip is asked for.
NEWEST = {
    "newest": ["torch"],
    "nightly": [
        *("--pre", "--index-url=https://download.pytorch.org/whl/nightly/cpu"),
        *("--extra-index-url=https://pypi.org/simple", "torch"),
    ],
}


def install_version(version: str) -> Path:
    """The Python of the environment for a version; the environment is made if it is missing.

    :param version: such as ``2.14.1``; ``newest`` and ``nightly`` are resolved each time, and ``here`` installs nothing.
    :raises SystemExit: if there is no such version, or pip fails.
    """
    if version == "here":
        return Path(sys.executable)
    if version not in NEWEST and not re.fullmatch(r"\d+\.\d+\.\d+\w*", version):
        raise SystemExit(f"versions: {version!r} is no version of PyTorch; write 2.14.1, newest, nightly or here")
    folder = HOME / version
    python, is_whole = folder / "bin" / "python", folder / "is-whole"
    if is_whole.exists() and version not in NEWEST:
        return python
    wishes = NEWEST.get(version, [f"torch=={version}"])
    # before 2.3, what was compiled for NumPy 1 cannot be used with NumPy 2
    numpy = "numpy<2" if version[0].isdigit() and split_version(version) < (2, 3) else "numpy"
    shutil.rmtree(folder, ignore_errors=True)
    install = ["-m", "pip", "--python", str(python), "install", "--quiet", *wishes, numpy, "expecttest", "setuptools"]
    for command in (["-m", "venv", "--without-pip", str(folder)], install):
        done = subprocess.run([sys.executable, *command], stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"versions: torch {version} cannot be installed:\n{done.stderr.strip()[-2000:]}")
    is_whole.touch()
    return python


def split_version(version: str) -> tuple[int, ...]:
    """The numbers of a version, to compare it with another.

    >>> split_version("2.4.1") < split_version("2.14.1+cpu")
    True
    """
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3])


def measure_version(python: Path) -> dict[str, Any]:
    """What ``answer_all`` finds under another Python.

    :raises SystemExit: if it ends without an answer.
    """
    own = python == Path(sys.executable)
    environment = {name: value for name, value in os.environ.items() if own or name != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "found.json"
        command = [str(python), __file__, "--answer", str(file)]
        done = subprocess.run(command, env={**environment, "PYTHONHASHSEED": "0"}, check=False)
        if done.returncode or not file.exists():
            raise SystemExit(f"versions: `{' '.join(command[:2])} --answer` ended with {done.returncode}")
        return json.loads(file.read_text(encoding="utf-8"))


# -- The data -------------------------------------------------------------------------------------


def spell_out(points: dict[str, Any], versions: Sequence[str]) -> dict[str, Any]:
    """The answer of each version that has one.

    >>> spell_out({"1.0": "a", "3.0": None, "4.0": "b"}, ["0.9", "1.0", "2.0", "3.0", "4.0"])
    {'1.0': 'a', '2.0': 'a', '4.0': 'b'}
    """
    answers, answer = {}, None
    for version in versions:
        answer = points.get(version, answer)
        if answer is not None:
            answers[version] = answer
    return answers


def fold_up(answers: dict[str, Any], versions: Sequence[str]) -> dict[str, Any]:
    """The opposite.

    >>> fold_up({"1.0": "a", "2.0": "a", "4.0": "b"}, ["0.9", "1.0", "2.0", "3.0", "4.0"])
    {'1.0': 'a', '3.0': None, '4.0': 'b'}
    """
    pairs = itertools.pairwise([None, *map(answers.get, versions)])
    return {version: new for version, (old, new) in zip(versions, pairs, strict=True) if new != old}


def add_version(data: dict[str, Any], found: dict[str, Any]) -> None:
    """Put what was found of a version into the data, in place of what they have of it."""
    version, before = found["torch"], list(data["versions"])
    data["versions"][version] = {"measured": datetime.date.today().isoformat(), "python": found["python"]}
    data["versions"] = {one: data["versions"][one] for one in sorted(data["versions"], key=split_version)}
    for kind in (*SUBJECTS, "signatures", "operators"):
        old = data[kind]
        names = found[kind] if kind in SUBJECTS else sorted({**old, **found[kind]}, key=str.lower)
        data[kind] = {}
        for name in names:
            answers = spell_out(old.get(name, {}), before)
            answers[version] = found[kind].get(name)
            data[kind][name] = fold_up(answers, list(data["versions"]))


def write_data(data: dict[str, Any], file: Path) -> None:
    """Write the data, a line for each thing."""
    write = functools.partial(json.dumps, ensure_ascii=False)
    kinds = []
    for kind, things in data.items():
        lines = ",\n".join(f"  {write(name)}: {write(of)}" for name, of in things.items())
        kinds.append(f" {write(kind)}: {{\n{lines}\n }}")
    file.write_text("{\n" + ",\n".join(kinds) + "\n}\n", encoding="utf-8")


def list_changes(data: dict[str, Any], version: str) -> Iterator[str]:
    """What a version does otherwise than the one before it, as lines of Markdown; none if there is nothing."""
    versions = list(data["versions"])
    before = dict(itertools.pairwise(versions[::-1])).get(version)
    for kind in (*SUBJECTS, "signatures", "operators"):
        for name, points in data[kind].items():
            answers = spell_out(points, versions)
            if before in answers and version in answers:
                pair = answers[before], answers[version]
                for column, was, now in zip(COLUMNS, *pair, strict=True) if kind == "operators" else [("", *pair)]:
                    if was != now:
                        yield f"- {kind}: `{name}`{column and f' {column}'}: `{was}` on {before}, `{now}` on {version}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", help="such as 2.14.1; or newest, nightly, here")
    parser.add_argument("--remove", action="store_true", help="remove each environment when it has been measured")
    parser.add_argument("--report", type=Path, help="write what differs to this file too, if anything does")
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)  # what measure_version calls
    options = parser.parse_args(arguments)
    if options.answer:
        options.answer.write_text(json.dumps(answer_all(os.cpu_count())), encoding="utf-8")
        return
    told: list[str] = []
    for version in options.versions:
        found = measure_version(install_version(version))
        if options.remove:
            shutil.rmtree(HOME / version, ignore_errors=True)
        data = json.loads(DATA.read_text(encoding="utf-8"))
        add_version(data, found)
        write_data(data, DATA)
        lines = list(list_changes(data, found["torch"]))
        told += [f"## torch {found['torch']}\n", *lines] if lines else []
        print(f"versions: torch {found['torch']} is in {DATA}; {len(lines)} answers differ from the version before")
    print("\n".join(told))
    if options.report and told:
        options.report.write_text("\n".join(told) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
