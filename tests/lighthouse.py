"""Ask Lighthouse about one page of each type, as a phone on a slow line sees it: ``nox -s lighthouse``.

Needs Node.js, which fetches Lighthouse, Chromium and nginx. The performance score depends on the machine: a page that is below
its bound is asked again, and its best score counts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "browser"))

from chromium import WHOLE, chromium
from serving import serve

from sources import ROOT

LIGHTHOUSE = "lighthouse@13.5.0"
BOUNDS = {"performance": 0.97, "accessibility": 1.0, "best-practices": 1.0, "seo": 1.0}
PAGES = """
    index.html guide/which-switch.html guide/learning-paths.html gallery/index.html gallery/graphs/index.html
    gallery/graphs/first_graph.html gallery/tensors/copy_table.html gallery/errors/index.html gallery/errors/backward_twice.html
    then-and-now.html reference/glossary.html reference/operators.html reference/names.html reference/versions.html
"""
TRIES = 3


def ask_lighthouse(address: str) -> dict[str, float]:
    """The score of each category, from 0 to 1. The audits that cost points are printed.

    :raises FileNotFoundError: if Chromium is not installed.
    :raises subprocess.CalledProcessError: if Lighthouse cannot be fetched or does not end well.
    """
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = ["npx", "--yes", LIGHTHOUSE, address, "--quiet", "--output=json", f"--output-path={report}"]
        flags = "--chrome-flags=--headless=new --no-sandbox --disable-gpu"
        environment = os.environ | {"CHROME_PATH": chromium(WHOLE)}
        subprocess.run([*command, flags], env=environment, check=True, cwd=folder)
        found = json.loads(report.read_text(encoding="utf-8"))
    for name in BOUNDS:
        for weighed in found["categories"][name]["auditRefs"]:
            audit = found["audits"][weighed["id"]]
            counts = weighed["weight"] and audit["scoreDisplayMode"] in ("binary", "numeric", "metricSavings")
            if counts and (audit["score"] or 0) < 0.9:
                print(f"  {name}: {audit['title']}")
    return {name: found["categories"][name]["score"] for name in BOUNDS}


def main() -> int:
    below = 0
    with serve(ROOT / "build" / "html") as origin:
        for page in PAGES.split():
            best = dict.fromkeys(BOUNDS, 0.0)
            for _attempt in range(TRIES):
                try:
                    found = ask_lighthouse(f"{origin}/{page}")
                except subprocess.CalledProcessError:  # now and then Chromium records nothing
                    continue
                best = {name: max(best[name], score) for name, score in found.items()}
                if all(best[name] >= bound for name, bound in BOUNDS.items()):
                    break
            else:
                below += 1
            print(f"{page:<40}", *(f"{name} {best[name]:.2f}" for name in BOUNDS), flush=True)
    return min(below, 1)


if __name__ == "__main__":
    sys.exit(main())
