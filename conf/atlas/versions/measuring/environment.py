"""An environment for each version of PyTorch, in a folder of its own, installed once.

It has the packages of requirements.txt, in these versions, except for PyTorch and what that version of PyTorch asks to have in
another version.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

NIGHTLY = "nightly"
"""Instead of a version: the last build of PyTorch's main branch."""
NEWEST = "newest"
"""Instead of a version: the newest release that pip finds."""

_NIGHTLY_INDEX = "https://download.pytorch.org/whl/nightly/cpu"
_VERSION = re.compile(r"\d+\.\d+(\.\d+)?((a|b|rc)\d+)?(\.dev\d+)?")
#: Before torch 2.3, what was compiled for NumPy 1 cannot be used with NumPy 2. Then pip chooses versions of these that can.
_NUMPY_1 = (2, 3)
_ON_NUMPY = ("matplotlib", "pandas", "scikit-learn")


class InstallError(Exception):
    """An environment could not be made; the message says why and what to try."""


def parts(version: str) -> tuple[int, ...]:
    """The numbers of a version, to compare it with another.

    >>> parts("2.4.1") < parts("2.14.1+cpu")
    True
    """
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("+")[0])[:3])


def python(home: Path, version: str, requirements: Path) -> Path:
    """The Python of the environment for a version below ``home``; the environment is made if it is missing or out of date.

    :param version: such as ``2.14.1``, or ``NEWEST`` or ``NIGHTLY``, which are resolved each time.
    :raises InstallError: if there is no such version, or pip fails.
    """
    if version not in (NEWEST, NIGHTLY) and not _VERSION.fullmatch(version):
        raise InstallError(f"{version!r} is no version of PyTorch; write one such as 2.14.1, {NEWEST} or {NIGHTLY}")
    folder = home / version
    found = folder / "bin" / "python"
    lasting = version not in (NEWEST, NIGHTLY)
    stamp, wanted = folder / "made-of.json", _made_of(requirements)
    if lasting and found.exists() and stamp.is_file() and json.loads(stamp.read_text()) == wanted:
        return found
    shutil.rmtree(folder, ignore_errors=True)
    _do(sys.executable, "-m", "venv", "--without-pip", str(folder))
    wishes = _wishes(version)
    packages = _resolve(found, version, wishes)
    print(f"versions: torch {version} and what it needs are {_size(packages)} to fetch, into {folder}", flush=True)
    _pip(found, "install", "--quiet", *wishes)
    brought = {_plain(package["metadata"]["name"]) for package in packages}
    pins = [pin for pin in _pins(requirements) if _plain(pin.partition("==")[0]) not in brought]
    _pip(found, "install", "--quiet", "--no-deps", *pins)
    stamp.write_text(json.dumps(wanted))
    return found


def remove(home: Path, version: str) -> None:
    """Take the environment away again: each is gigabytes large."""
    shutil.rmtree(home / version, ignore_errors=True)


def _wishes(version: str) -> list[str]:
    """What pip is asked for."""
    if version == NIGHTLY:
        return [
            "--pre",
            "--index-url",
            _NIGHTLY_INDEX,
            "--extra-index-url",
            "https://pypi.org/simple",
            "torch",
            "numpy",
        ]
    if version == NEWEST:
        return ["--upgrade", "torch", "numpy"]
    numpy = ["numpy<2", *_ON_NUMPY] if parts(version) < _NUMPY_1 else ["numpy"]
    return [f"torch=={version}", *numpy]


def _resolve(python: Path, version: str, wishes: list[str]) -> list[dict[str, Any]]:
    """What pip would install, as its report tells."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--dry-run",
        "--quiet",
        "--report",
        "-",
    ]
    done = subprocess.run([*command, *wishes], capture_output=True, text=True, check=False)
    if done.returncode:
        reason = done.stderr.strip().splitlines()[-1:] or ["pip says nothing"]
        raise InstallError(
            f"pip finds no torch {version} for Python {sys.version_info.major}.{sys.version_info.minor}: {reason[0]}"
        )
    return json.loads(done.stdout)["install"]


def _size(packages: list[dict[str, Any]]) -> str:
    """How much these packages are to fetch, of those whose server tells."""
    known = [size for package in packages if (size := _bytes(package["download_info"]["url"])) is not None]
    more = "" if len(known) == len(packages) else " or more"
    return f"{sum(known) / 2**30:.1f} GiB{more}"


def _bytes(url: str) -> int | None:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=20) as answer:
            return int(answer.headers["Content-Length"])
    except (OSError, TypeError, ValueError):
        return None


def _pins(requirements: Path) -> list[str]:
    return re.findall(r"^[\w.-]+(?:\[\w+\])?==\S+", requirements.read_text(encoding="utf-8"), re.MULTILINE)


def _plain(name: str) -> str:
    """A package's name as pip compares it: case and separators aside.

    >>> _plain("Typing.Extensions")
    'typing-extensions'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def _made_of(requirements: Path) -> dict[str, str]:
    return {"requirements": hashlib.sha256(requirements.read_bytes()).hexdigest(), "python": sys.version}


def _pip(python: Path, *arguments: str) -> None:
    """The pip of this Python, for the environment of another: that needs none of its own."""
    _do(sys.executable, "-m", "pip", "--python", str(python), *arguments)


def _do(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise InstallError(f"`{' '.join(command[1:5])} ...` failed:\n{done.stderr.strip()[-2000:]}")
