"""The scripts of the gallery: where they are, and which of them no page could be made of."""

from __future__ import annotations

from pathlib import Path

from . import halves
from .model import HEADER, Site


class ScriptError(Exception):
    """Scripts that no page can be made of; the message names each, and the way out."""


def saved_meanwhile(script: str) -> str:
    """What a build says that must not go on with a script that changed below it."""
    return f"{script} was saved while the site was being built; build it again"


def check(site: Site) -> None:
    """See that each script below the examples becomes a page.

    :raises ScriptError: if one does not.
    """
    wrong = []
    for script in sorted(site.examples.rglob("*.py")):
        path = script.relative_to(site.examples)
        hidden = any(part.startswith(".") for part in path.parts[:-1])  # a copy that an editor keeps
        fault = "" if hidden else _fault(script, len(path.parts))
        if fault:
            wrong.append(f"{site.examples.name}/{path.as_posix()}: {fault}")
    if wrong:
        raise ScriptError("\n".join(wrong))


def _fault(script: Path, depth: int) -> str:
    if depth == 1:
        return "the script is in no chapter; move it into the folder of one"
    if depth > 2:
        return "the script is in a folder below its chapter; move it into the chapter itself"
    if not (script.parent / HEADER).is_file():
        return f"the script is in a folder that is no chapter; add a {HEADER} there, or move it into a chapter"
    if not script.stem.isidentifier():
        return "the script's name cannot be imported; use letters, digits and underscores, and begin with a letter"
    if len(halves.marks(script.read_text(encoding="utf-8", errors="replace"))) > 1:
        return f"the script has several lines '# {halves.MARK}'; one parts what runs everywhere from what needs a GPU"
    return ""
