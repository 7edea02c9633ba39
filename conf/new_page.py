"""Make a page of the gallery that runs, to be filled: ``chapter/page "Title"``. ``nox -s new`` calls this.

``--check`` makes nothing. It fails if a sentence of a template is left in a page, and names its line. ``nox -s lint`` calls it.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

CONF = Path(__file__).resolve().parent
sys.path.insert(0, str(CONF))

from atlas.new_page import make, to_write


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="nox -s new --", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("where", nargs="?", default="", metavar="CHAPTER/PAGE", help="such as graphs/my_page")
    parser.add_argument("title", nargs="?", default="", help="what people search for; of an error, its message")
    parser.add_argument(
        "--after", metavar="PAGE", help="the page that comes before it; the last of the chapter if not given"
    )
    parser.add_argument("--group", help="the group of the list of errors, or how its title begins")
    parser.add_argument("--check", action="store_true", help="say what is still to be written, in all pages")
    parser.add_argument("--root", type=Path, default=CONF.parent, help="the folder that holds conf/ and examples/")
    options = parser.parse_args(arguments)
    if options.check:
        return check(options.root)
    try:
        made = make.make(options.root, make.Wish(options.where, options.title, options.after, options.group))
    except make.PageError as error:
        print(f"new: {error}", file=sys.stderr)
        return 2
    script, *changed = (path.relative_to(options.root).as_posix() for path in made)
    print(f"new: {script} runs as it is; replace what begins with 'To write:'")
    print(f"new: changed {', '.join(changed)}")
    page = script.removeprefix("examples/").removesuffix(".py")
    print(f"new: 'python3 -m nox -s page -- {page}' builds it alone, in seconds, and says what is left")
    print(f"new: its address is gallery/{page}.html; 'python3 -m nox -s serve' shows the whole site while you write")
    return 0


def check(root: Path) -> int:
    """Say what is still the template's, in all pages."""
    found = to_write.report(root / "examples")
    for sentence in found:
        print(sentence)
    if found:
        print("new: these sentences are the template's; write them, or remove them", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
