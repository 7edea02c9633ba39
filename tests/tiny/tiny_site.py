"""Build a tiny site with the settings of the real one.

Sphinx reads ``conf/`` itself as its configuration folder, and a tiny site as its sources. So a setting that is changed there,
or an extension that is taken out, is changed for the tests too.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import warm_python
from sources import GENERATED, ROOT


@dataclass(frozen=True, slots=True)
class Build:
    code: int
    """The exit status: 0 if all is well."""
    output: str
    site: Path
    out: Path

    def times(self) -> dict[str, int]:
        """When each page was written, in nanoseconds, without those that Sphinx writes at every build."""
        found = {path.relative_to(self.out).as_posix(): path for path in sorted(self.out.rglob("*.html"))}
        return {name: path.stat().st_mtime_ns for name, path in found.items() if name not in GENERATED}

    def is_refused_with(self, message: str) -> bool:
        """Whether the build failed with this message, and not with what Sphinx prints around an exception."""
        noise = ("Traceback", "To report this error", "Versions\n===", "Loaded Extensions")
        return self.code != 0 and message in self.output and not any(words in self.output for words in noise)

    def about(self, file: str) -> str:
        """What the output says of a file: for a test that fails."""
        lines = self.output.splitlines()
        name = Path(file).stem
        near = sorted({n for i, line in enumerate(lines) if name in line for n in range(i, min(i + 10, len(lines)))})
        return "\n".join([f"said of {file}:", *(lines[n] for n in near)])


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A folder as it was, to be put back where it was: Sphinx trusts no copy of a built site at another path."""

    folder: Path
    kept: Path

    @classmethod
    def of(cls, folder: Path) -> Snapshot:
        return cls(folder, Path(shutil.copytree(folder, folder.with_name(f"{folder.name}.kept"))))

    def restore(self) -> None:
        """Put everything back, with its times."""
        shutil.rmtree(self.folder)
        shutil.copytree(self.kept, self.folder)


def copy_of(source: Path, site: Path) -> Path:
    """Copy a tiny site to where it may be built: Sphinx writes into its sources."""
    return Path(shutil.copytree(source, site, dirs_exist_ok=True))


def copy_conf(folder: Path) -> Path:
    """Copy the settings of the real site, for a test that changes them, with the file beside them that they read."""
    conf = Path(shutil.copytree(ROOT / "conf", folder / "conf"))
    (folder / "examples").mkdir()
    shutil.copy(ROOT / "examples" / "pages.toml", folder / "examples")
    return conf


def written(site: Path, files: dict[str, str]) -> Path:
    """Write a tiny site's files, by their paths in it; a front page and the gallery's first page are added."""
    pages = [path.removesuffix(".md").removeprefix("docs/") for path in files if path.endswith(".md")]
    front = "# Front\n\n```{toctree}\ngallery/index\n" + "\n".join(pages) + "\n```\n"
    chapters = {path.rpartition("/")[0] for path in files if path.endswith(".py")}
    titles = {chapter: f"Chapter {chapter.rpartition('/')[2]}" for chapter in chapters}
    heads = {f"{chapter}/GALLERY_HEADER.rst": f"{title}\n{'-' * len(title)}\n" for chapter, title in titles.items()}
    first = {"docs/index.md": front, "examples/GALLERY_HEADER.rst": "Examples\n========\n\nText.\n"}
    for name, text in {**first, **heads, **files}.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
    return site


def build(
    site: Path, builder: str = "html", options: Sequence[str] = (), conf: Path = ROOT / "conf", real: bool = False
) -> Build:
    """Build as ``nox -s docs`` does, in a process of its own: with warnings as errors, going on after the first.

    :param conf: the configuration folder, for a test that changes it: a copy of the real one.
    :param real: build in a new process instead of a forked one, which takes several seconds longer.
    :raises TimeoutError: if the build does not end.
    """
    out = site / builder
    own = ["--fail-on-warning", "--keep-going", "--no-color", "--conf-dir", conf, "--builder", builder]
    arguments = ["-m", "sphinx", *own, *options, "--doctree-dir", site / "doctrees", "docs", out]
    env = {**os.environ, "COLUMNS": "200", "RUNS": str(site / "runs.txt")}
    done = warm_python.run_python([str(word) for word in arguments], cwd=site, env=env, wall=1200, real=real)
    return Build(done.code, done.output, site, out)
