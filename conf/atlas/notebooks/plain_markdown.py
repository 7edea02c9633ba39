"""Text of a page as Jupyter shows it: what only MyST knows is said in plain Markdown."""

from __future__ import annotations

import re

#: In the order in which they are tried: a role, code or a formula, a link. What stands in the second is left alone.
_INLINE = re.compile(
    r"\{(?P<role>[\w:+-]+)\}`(?P<said>[^`]+)`"
    r"|(?P<code>(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)|\$[^$\n]+\$)"
    r"|(?<!!)\[(?P<words>(?:[^\[\]`]|`[^`]*`)+)\]\((?P<to>[^)\s]*)\)",
    re.DOTALL,
)
_NAMED = re.compile(r"(?P<words>.*?)\s*<[^<>]*>", re.DOTALL)
#: Roles whose words stand on the page as prose; others have code.
_PROSE = ("doc", "ref", "term", "numref", "abbr", "any", "download")
_DEFINED = re.compile(r"^(?P<term>\S.*)\n: +(?P<rest>.*)", re.MULTILINE)


def plain(text: str) -> str:
    r"""Words in place of roles and of links within the site; a list in place of definitions.

    >>> plain("See {doc}`the guide </guide/x>` on `f[0](x)`, [below](#below) and [there](https://a.example).")
    'See *the guide* on `f[0](x)`, below and [there](https://a.example).'
    >>> print(plain("term\n: What it\n  is."))
    - **term**: What it
      is.
    """
    defined = _DEFINED.sub(lambda found: f"- **{found['term']}**: {found['rest']}", text)
    return _INLINE.sub(_inline, defined)


def _inline(found: re.Match[str]) -> str:
    if found["code"]:
        return found[0]
    if found["words"]:
        return found[0] if "://" in found["to"] else found["words"]
    named = _NAMED.fullmatch(found["said"])
    words = named["words"] if named else found["said"]
    return f"*{' '.join(words.split())}*" if found["role"] in _PROSE else f"`{words}`"


def quote(text: str) -> str:
    """Text as a box.

    >>> print(quote("One\\n\\ntwo"))
    > One
    >
    > two
    """
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())
