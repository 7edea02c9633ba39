"""Make the sources of a small site with one page of the gallery: ``chapter/page``. ``nox -s page`` calls this."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

CONF = Path(__file__).resolve().parent
sys.path.insert(0, str(CONF))

from atlas.page_alone import sources


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="nox -s page --", description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("page", nargs="?", default="", metavar="CHAPTER/PAGE", help="such as graphs/my_page")
    parser.add_argument("--root", type=Path, default=CONF.parent, help="the folder that holds conf/ and examples/")
    options = parser.parse_args(arguments)
    try:
        sources.lay(options.root, options.page, options.root / "build/only")
    except sources.UnknownPageError as error:
        print(f"page: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
