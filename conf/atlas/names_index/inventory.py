"""Where PyTorch's reference has each name: an inventory that is kept here, so that a build needs no network.

``inventory.txt`` has a name in each line, sorted, of those that the site uses and the reference has. ``refresh`` writes it
anew. Its addresses are those of one release: in 2.13 the functions of ``torch.cuda.memory`` moved to other pages, and links to
"stable" would have broken. A change of the file makes Sphinx read all pages again, as a change of code does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE = Path(__file__).with_name("inventory.txt")
DOCS = "https://docs.pytorch.org/docs/"

_HEAD = """\
# Where PyTorch's reference has the names that this site uses. `nox -s reference` writes this file.
# A name alone has a page of its own: generated/NAME.html#NAME.
# release: {release}
# date: {date}
# source: {source}
"""


@dataclass(frozen=True, slots=True)
class Inventory:
    """
    :ivar release: of PyTorch, as the reference names it: ``2.13``.
    :ivar date: when the addresses were read.
    :ivar source: from where.
    :ivar places: the page and the anchor of each name.
    """

    release: str
    date: str
    source: str
    places: dict[str, str]

    def address(self, name: str) -> str:
        """Empty if the reference does not have the name. A page of its own has no anchor: it begins with the name.

        >>> inventory = Inventory("2.13", "", "", {"torch.Size": "size.html#torch.Size"})
        >>> inventory.address("torch.Size"), inventory.address("torch.Tensor.data")
        ('https://docs.pytorch.org/docs/2.13/size.html#torch.Size', '')
        """
        place = self.places.get(name, "")
        if place == own_page(name):
            place = place.partition("#")[0]
        return place and f"{DOCS}{self.release}/{place}"


@cache
def load(path: Path = FILE) -> Inventory:
    """
    :raises ValueError: if a line cannot be understood, with file and line.
    """
    said: dict[str, str] = {}
    places: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith("#"):
            said.update(re.findall(r"^# (release|date|source): (.+)$", line))
        elif found := re.fullmatch(r"(torch[\w.]+)(?: ([\w./-]+\.html(?:#[\w.-]+)?))?", line):
            places[found[1]] = found[2] or own_page(found[1])
        else:
            raise ValueError(
                f"{path}:{number}: neither a name nor a name and its page: {line!r}; run: nox -s reference"
            )
    if missing := {"release", "date", "source"} - said.keys():
        raise ValueError(f"{path}:1: the head does not say: {', '.join(sorted(missing))}; run: nox -s reference")
    return Inventory(**said, places=places)


def save(inventory: Inventory, path: Path = FILE) -> None:
    """Write the inventory so that two of them can be compared line by line."""
    head = _HEAD.format(release=inventory.release, date=inventory.date, source=inventory.source)
    lines = (
        name if place == own_page(name) else f"{name} {place}" for name, place in sorted(inventory.places.items())
    )
    path.write_text(head + "".join(f"{line}\n" for line in lines), encoding="utf-8")


def own_page(name: str) -> str:
    """
    >>> own_page("torch.exp")
    'generated/torch.exp.html#torch.exp'
    """
    return f"generated/{name}.html#{name}"
