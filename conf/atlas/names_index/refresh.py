"""``nox -s reference``: write ``inventory.txt`` anew, and tell which names PyTorch's reference no longer has.

It asks PyTorch's site for the inventory of the installed release, as intersphinx does, and keeps of it what the built site
uses. ``--inventory FILE`` takes a copy of ``objects.inv`` instead, for a machine without a network.

Not every name is in the reference under the name by which one calls it: ``torch.inference_mode`` is there as
``torch.autograd.grad_mode.inference_mode``, and ``torch.float32`` as a ``torch.dtype``.
"""

from __future__ import annotations

import argparse
import datetime
import html
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from urllib.request import Request, urlopen

from sphinx.util.inventory import InventoryFile

from . import inventory, torch_api
from .inventory import DOCS, FILE, Inventory

NAMES_PAGE = Path("build/html/reference/names.html")
#: What PyTorch documents as a class, and not one by one.
_BY_CLASS = {"torch.dtype", "torch.layout", "torch.memory_format"}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="nox -s reference --", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--inventory", help="a copy of objects.inv; else PyTorch's site is asked", metavar="FILE", type=Path
    )
    parser.add_argument("--names", help="the site's built list of names", default=NAMES_PAGE, type=Path)
    parser.add_argument("--out", default=FILE, type=Path)
    options = parser.parse_args(arguments)
    release = installed_release()
    address = f"{DOCS}{release}/objects.inv"
    try:
        used = names_used(options.names)
        listed = objects(options.inventory.read_bytes() if options.inventory else _download(address))
    except (OSError, ValueError) as error:
        print(f"{options.out.name} stays as it is. {error}", file=sys.stderr)
        return 1
    before = inventory.load(options.out).places if options.out.exists() else {}
    now = {name: place for name in used if (place := place_of(name, listed))}
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    source = f"a copy of {address}" if options.inventory else address
    inventory.save(Inventory(release, today, source, now), options.out)
    print("\n".join(changes(before, now, used)))
    return 0


def installed_release() -> str:
    return ".".join(version("torch").split(".")[:2])


def names_used(page: Path) -> list[str]:
    """The names that the built site uses.

    :raises ValueError: if the site has not been built.
    """
    if not page.is_file():
        raise ValueError(f"{page} is missing: build the site first, with: nox -s docs")
    return sorted(
        {html.unescape(name) for name in re.findall(r'id="name-([^"]+)"', page.read_text(encoding="utf-8"))}
    )


def objects(content: bytes) -> dict[str, str]:
    """The place of each Python object in an ``objects.inv``.

    :raises ValueError: if it is none.
    """
    try:
        found = InventoryFile.loads(content, uri="").data
    except ValueError as error:
        raise ValueError(f"What should be an objects.inv of Sphinx is none: {error}") from None
    return {name: item.uri for kind, named in found.items() if kind.startswith("py:") for name, item in named.items()}


def _download(address: str) -> bytes:
    try:
        with urlopen(Request(address, headers={"User-Agent": "autograd-atlas"}), timeout=60) as answer:
            return bytes(answer.read())
    except OSError as error:
        raise OSError(f"{address}: {error}; `-- --inventory FILE` takes a copy") from None


def place_of(name: str, listed: dict[str, str]) -> str:
    """Where the reference has the name, or what it stands for; empty if nowhere.

    >>> place_of("torch.no_grad", {"torch.autograd.grad_mode.no_grad": "no_grad.html"})
    'no_grad.html'
    """
    return next((listed[other] for other in _other_names(name) if other in listed), "")


def _other_names(name: str) -> Iterator[str]:
    """The name, then where the thing is defined and each shorter path to it, then its class."""
    yield name
    found = torch_api.find(name)
    module, own = getattr(found, "__module__", None), getattr(found, "__qualname__", None)
    if isinstance(module, str) and isinstance(own, str) and module.startswith("torch"):
        parts = module.split(".")
        for depth in range(len(parts), 0, -1):
            other = ".".join([*parts[:depth], own])
            if torch_api.find(other) is found:
                yield other
    cls = f"{type(found).__module__}.{type(found).__qualname__}"
    if cls in _BY_CLASS:
        yield cls


def changes(before: dict[str, str], now: dict[str, str], used: Iterable[str]) -> Iterator[str]:
    """What a maintainer should know, line by line.

    >>> print("\\n".join(changes({"torch.a": "1", "torch.b": "2"}, {"torch.a": "3"}, ["torch.a", "torch.b"])))
    1 of 2 names are links: 0 new, 1 moved, 1 gone from the reference, 0 no longer used by the site
    moved: torch.a, from 1 to 3
    gone: torch.b, which was at 2
    """
    names = set(used)
    new = sorted(now.keys() - before.keys())
    moved = sorted(name for name in now.keys() & before.keys() if now[name] != before[name])
    gone = sorted(name for name in before.keys() - now.keys() if name in names)
    unused = sorted(before.keys() - now.keys() - names)
    yield (
        f"{len(now)} of {len(names)} names are links: {len(new)} new, {len(moved)} moved, "
        f"{len(gone)} gone from the reference, {len(unused)} no longer used by the site"
    )
    yield from (f"new: {name}, at {now[name]}" for name in new)
    yield from (f"moved: {name}, from {before[name]} to {now[name]}" for name in moved)
    yield from (f"gone: {name}, which was at {before[name]}" for name in gone)


if __name__ == "__main__":
    sys.exit(main())
