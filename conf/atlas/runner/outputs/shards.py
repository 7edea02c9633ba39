"""Share the examples out to several machines, and put together what they made.

A machine that runs shard 2 of 4 leaves a part, ``part-2-of-4.zip``: the outputs of its examples, below the name of each, and
``part.json``, which says what the part is of and holds the SHA-256 of every file. Parts are used together or not at all.
The table of operators is shared out like an example, under the name ``OPERATORS``.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import statistics
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from atlas import operators
from atlas.runner.fill import State, last_seconds
from atlas.runner.model import Site

from . import cache, fingerprint

OPERATORS = "reference/operators"
_MANIFEST = "part.json"
_FACTS = ("commit", "versions", "shared_out", "made", "files")
_UNKNOWN = 2.0  # seconds, for an example that never ran, where none has


class ShardError(Exception):
    """A part that cannot be used, or an impossible shard; the message says which, and the way out."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several machines, counted from 1."""

    number: int
    of: int

    @classmethod
    def named(cls, text: str) -> Shard:
        """
        :raises ShardError: if there is no such shard.

        >>> Shard.named("2/4")
        Shard(number=2, of=4)
        """
        found = re.fullmatch(r"(\d+)/(\d+)", text)
        if not found or not 1 <= int(found[1]) <= int(found[2]):
            raise ShardError(f"no such shard: {text!r}; write which of how many, such as 2/4")
        return cls(int(found[1]), int(found[2]))

    @property
    def file(self) -> str:
        return f"part-{self.number}-of-{self.of}.zip"


@dataclass(frozen=True, slots=True)
class Part:
    """What one machine made, as its archive says."""

    path: Path
    shard: Shard
    about: Mapping[str, Any]

    @property
    def files(self) -> Mapping[str, str]:
        """The SHA-256 of each file, by ``<page>/<output>``."""
        return self.about["files"]

    @property
    def made(self) -> Mapping[str, Mapping[str, Any]]:
        """What each page's receipt is to say, by page."""
        return self.about["made"]


# -- Sharing out ----------------------------------------------------------------------------------


def waiting(site: Site, state: State) -> dict[str, float]:
    """All that is out of date, with the seconds that it took when it last ran."""
    found = {page.name: last_seconds(page) for page in state.stale}
    needed = (site.docs / f"{OPERATORS}.md").exists() and operators.read_operators(site.docs) is None
    return found | ({OPERATORS: 50.0} if needed else {})


def share_out(seconds: Mapping[str, float], shards: int) -> list[list[str]]:
    """Names for each shard, so that all take about as long: the longest first, each to the shard with the least to do.

    :param seconds: for each name; infinity where nobody knows, which counts as the median of the others.

    >>> share_out({"a": 3.0, "b": 2.0, "c": 2.0, "d": float("inf")}, 2)
    [['a', 'd'], ['b', 'c']]
    """
    known = [one for one in seconds.values() if one != float("inf")]
    usual = statistics.median(known) if known else _UNKNOWN
    expected = {name: usual if one == float("inf") else one for name, one in seconds.items()}
    shares: list[list[str]] = [[] for _ in range(shards)]
    loads = [0.0] * shards
    for name in sorted(expected, key=lambda name: (-expected[name], name)):
        least = loads.index(min(loads))
        shares[least].append(name)
        loads[least] += expected[name]
    return shares


# -- Making a part --------------------------------------------------------------------------------


def pack(site: Site, shard: Shard, names: Iterable[str], about: Mapping[str, Any], folder: Path) -> Path:
    """Write the outputs of the pages ``names``, which are current, to an archive in ``folder``, whole or not at all.

    :param about: what the part is of, as ``of_what`` returns it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / shard.file
    pages = {page.name: page for page in site.pages()}
    made: dict[str, Any] = {}
    sources: dict[str, Path] = {}
    for name in names:
        if name == OPERATORS:
            made[name] = {}
            data = site.docs / operators.DATA
            sources |= {f"{name}/{file.name}": file for file in (data, data.with_suffix(".csv"))}
        else:
            receipt = cache.read_receipt(pages[name])
            sources |= {f"{name}/{output}": pages[name].cache / output for output in receipt.pop("outputs")}
            made[name] = receipt
    files = {name: cache.sha256(source) for name, source in sources.items()}
    part = path.with_name(path.name + ".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_MANIFEST, json.dumps({**about, "made": made, "files": files}, indent=1))
        for name, source in sources.items():
            archive.write(source, name)
    part.replace(path)
    return path


def of_what(site: Site, state: State, commit: str) -> dict[str, Any]:
    """What all parts that belong together have in common: the commit, the versions, and what was shared out."""
    return {
        "commit": commit,
        "versions": fingerprint.shared(site.settings),
        "shared_out": sorted(waiting(site, state)),
    }


# -- Putting parts together -----------------------------------------------------------------------


def merge(site: Site, state: State, folder: Path, commit: str) -> list[str]:
    """Publish the outputs of all parts in ``folder``; return the names of what they hold. Nothing runs.

    :raises ShardError: if a part is missing, damaged, of another commit or of other versions, or if an example that is out
        of date is in no part. Then nothing is published.
    """
    parts = _all_of_one(folder)
    versions = fingerprint.shared(site.settings)
    for part in parts:
        _check_origin(part, commit, versions)
        if part.about["shared_out"] != parts[0].about["shared_out"]:
            raise ShardError(
                f"{part.path.name} and {parts[0].path.name} shared out different examples: their machines had not the same "
                "outputs before; start all from the same ones"
            )
    pages = {page.name: page for page in state.wanted}
    made = {name: part for part in parts for name in part.made}
    for name in waiting(site, state):
        if name not in made:
            raise ShardError(f"{name} is out of date here and in no part; run all shards again")
    for name, part in made.items():
        if name != OPERATORS and (name not in pages or part.made[name]["fingerprint"] != state.wanted[pages[name]]):
            raise ShardError(f"{part.path.name}: its {name} is not of the script that is here; run all shards again")
    unpacked = site.work / "parts"
    shutil.rmtree(unpacked, ignore_errors=True)
    try:
        for part in parts:
            _unpack(part, unpacked)
        for name in sorted(made):
            if name == OPERATORS:
                shutil.copytree(unpacked / name, (site.docs / operators.DATA).parent, dirs_exist_ok=True)
            else:
                (unpacked / name).mkdir(parents=True, exist_ok=True)
                cache.publish(pages[name], unpacked / name, **made[name].made[name])
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)
    return sorted(made)


def _all_of_one(folder: Path) -> list[Part]:
    """The parts in a folder, if they are all there are."""
    parts = sorted((_read(path) for path in folder.glob("part-*.zip")), key=lambda part: part.shard.number)
    if not parts:
        raise ShardError(f"{folder}: no part is here; a part is called {Shard(1, 4).file}")
    of = parts[0].shard.of
    for part in parts:
        if part.shard.of != of:
            raise ShardError(f"{part.path.name} and {parts[0].path.name} are not of the same number of parts")
    missing = set(range(1, of + 1)) - {part.shard.number for part in parts}
    if missing:
        raise ShardError(f"{folder}: missing: {', '.join(Shard(number, of).file for number in sorted(missing))}")
    return parts


def _read(path: Path) -> Part:
    found = re.fullmatch(r"part-(\d+)-of-(\d+)\.zip", path.name)
    if not found:
        raise ShardError(f"{path.name}: is no name of a part; a part is called {Shard(1, 4).file}")
    try:
        with zipfile.ZipFile(path) as archive:
            about = json.loads(archive.read(_MANIFEST))
            names = set(archive.namelist()) - {_MANIFEST}
        part = Part(path, Shard.named(f"{found[1]}/{found[2]}"), {name: about[name] for name in _FACTS})
    except Exception as error:  # zipfile raises whatever the damage leads it to
        raise ShardError(f"{path.name}: is damaged: {error}") from None
    for name in sorted(names ^ set(part.files)):
        raise ShardError(f"{path.name}: is damaged: {name} is {'not listed' if name in names else 'missing'}")
    for name in part.files:
        parts = name.split("/")
        if "/".join(parts[:2]) not in part.made or len(parts) < 3 or {"", ".", ".."} & set(parts):
            raise ShardError(f"{path.name}: is damaged: {name} belongs to no page")
    return part


def _check_origin(part: Part, commit: str, versions: fingerprint.Fingerprint) -> None:
    if part.about["commit"] != commit:
        raise ShardError(
            f"{part.path.name}: is of commit {part.about['commit']}, and this is {commit}; run its shard again"
        )
    other = fingerprint.changes(part.about["versions"], versions)
    if other:
        raise ShardError(f"{part.path.name}: was made with other versions than are here: {'; '.join(other)}")


def _unpack(part: Part, folder: Path) -> None:
    """Write the files of a part below ``folder``, if each is what it was."""
    with zipfile.ZipFile(part.path) as archive:
        for name, digest in part.files.items():
            try:
                content = archive.read(name)
            except Exception as error:  # likewise
                raise ShardError(f"{part.path.name}: is damaged: {error}") from None
            if hashlib.sha256(content).hexdigest() != digest:
                raise ShardError(f"{part.path.name}: is damaged: {name} is not what was packed")
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)
