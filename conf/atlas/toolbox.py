"""Small things that several features need: files written whole, links, sentences, data for scripts, how a build is refused."""

from __future__ import annotations

import ast
import atexit
import gc
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docutils import nodes
    from sphinx.application import Sphinx

# -- How a build is refused -----------------------------------------------------------------------


class Refusal(SystemExit):
    """Ends the build with a message that says why and the way out, exit status 1, and nothing around it.

    Sphinx wraps an ``Exception`` in a traceback, a list of versions and a request to report a bug to Sphinx. ``SystemExit`` is
    none, and Python prints its message alone. Raise it in handlers of ``config-inited`` and ``builder-inited``. A handler of
    ``build-finished`` logs an error and sets ``app.statuscode`` instead, so that those after it are called as well.
    """

    def __init__(self, message: str) -> None:
        super().__init__(f"\nERROR: {message}")


def find_wrong_encoding(file: Path) -> str:
    """What is wrong with a source that is not UTF-8, with its line and the way out; empty if it is."""
    content = file.read_bytes()
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        return f"{file}:{line}: the file is not UTF-8: {error.reason}; save it as UTF-8"
    return ""


# -- Files that a build keeps for the next one ----------------------------------------------------


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader finds the old content or the new, never a part. Its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def write_if_changed(path: Path, text: str) -> None:
    """``write_whole``, but a file with just this text keeps its date."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        write_whole(path, text)


def save_json(path: Path, of: dict[str, Any], **data: Any) -> None:
    """Keep ``data`` as JSON, with what it depends on: a version, a hash of the code that made it."""
    write_whole(path, json.dumps({"of": of, **data}, indent=1))


def load_json(path: Path, of: dict[str, Any]) -> dict[str, Any] | None:
    """What ``save_json`` has kept; None if it is missing, broken, or depends on something else than ``of``."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("of") == of else None


# -- What our code puts on a page -----------------------------------------------------------------


def link_to(app: Sphinx, page: str, target: str, words: str | nodes.Node = "", *, after: str = "") -> nodes.reference:
    """A link from ``page`` to the page ``target`` of this site.

    :param words: what the reader clicks; the target's title if empty.
    :param after: what follows the address of the page: ``#anchor``, ``?query``.
    """
    from docutils import nodes

    shown = words if isinstance(words, nodes.Node) else nodes.Text(words or app.env.titles[target].astext())
    address = app.builder.get_relative_uri(page, target) + after
    return nodes.reference("", "", shown, refuri=address, internal=True)


# -- Text of a page as words to show elsewhere ----------------------------------------------------

LONGEST = 300  # characters; a first sentence may be longer
_END = re.compile(r"(?<=[.?!:])\s+(?=[A-Z`])")


def one_line(text: str) -> str:
    """The text with one space wherever it has white space.

    >>> one_line(" a title\\n  in two lines")
    'a title in two lines'
    """
    return " ".join(text.split())


def first_sentences(text: str, longest: int = LONGEST) -> str:
    """As many whole sentences as fit into ``longest`` characters; the first, however long it is.

    >>> first_sentences("One is short. The second is not that short.", longest=20)
    'One is short.'
    """
    sentences = _END.split(text)
    kept = sentences[0]
    for sentence in sentences[1:]:
        if len(kept) + 1 + len(sentence) > longest:
            break
        kept = f"{kept} {sentence}"
    return kept


# -- Python ---------------------------------------------------------------------------------------


def list_imports(tree: ast.AST) -> list[tuple[str, str, str]]:
    """What code imports: the module, what of it, and the name that the code has for it.

    >>> list_imports(ast.parse("import torch.nn as n, os.path\\nfrom . import a"))
    [('torch.nn', '', 'n'), ('os.path', '', 'os'), ('.', 'a', 'a')]
    """
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, "", alias.asname or alias.name.partition(".")[0]) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found += [(module, alias.name, alias.asname or alias.name) for alias in node.names]
    return found


def read_imports(tree: ast.AST) -> set[str]:
    """The first words of the modules that the code imports anywhere; ``.`` for what it imports from beside itself.

    >>> sorted(read_imports(ast.parse("import torch.nn, math; from . import beside; from numpy.linalg import norm")))
    ['.', 'math', 'numpy', 'torch']
    """
    return {"." if module.startswith(".") else module.partition(".")[0] for module, _, _ in list_imports(tree)}


_OF_PYTHON = gc.get_threshold()
_NEW_OBJECTS = 50_000


def collect_garbage_seldom() -> None:
    """Have Python look for garbage in cycles seldom, and not at its end.

    A build holds a million objects, and hardly any garbage: looking took a quarter of the time of a build after one edit.
    """
    gc.set_threshold(_NEW_OBJECTS, *_OF_PYTHON[1:])
    atexit.register(gc.freeze)


def collect_garbage_as_usual() -> None:
    """Look as often as in a new process: pages tell when an object in a cycle is freed."""
    gc.set_threshold(*_OF_PYTHON)
