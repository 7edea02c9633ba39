"""The internals of sphinx-gallery that our code calls or replaces, in one place.

If a new sphinx-gallery moves one of them, this module breaks, and ``tests/gallery/test_sphinx_gallery_patches.py`` says where.
"""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import sphinx_gallery.notebook
from sphinx_gallery import gen_rst, glr_path_static, py_source_parser, scrapers
from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF, _fill_gallery_conf_defaults
from sphinx_gallery.py_source_parser import remove_config_comments, split_code_and_text_blocks
from sphinx_gallery.utils import get_md5sum

from atlas.toolbox import Refusal

from .notebooks import fill_notebook
from .scripts import read_script
from .visible_code import show_code

#: Words in the names of settings that shape no page: orders, and what differs from build to build.
_NOT_OF_A_PAGE = re.compile("order|example|parallel|plot_gallery|ignore_pattern|first_notebook_cell")


def fill_settings(own: Mapping[str, Any], docs: Path) -> dict[str, Any]:
    """sphinx-gallery's settings filled in as a build does, from ``sphinx_gallery_conf`` of conf.py, without a build."""
    return {**_fill_gallery_conf_defaults(dict(own)), "src_dir": str(docs), "builder_name": "html", "titles": {}}


def describe_settings(settings: Mapping[str, Any]) -> str:
    """The part of ``settings``, filled in, that shapes pages, as a text that is the same in every build."""
    of_pages = {name: settings[name] for name in DEFAULT_GALLERY_CONF if not _NOT_OF_A_PAGE.search(name)}
    return json.dumps(of_pages, default=lambda value: sorted(value) if isinstance(value, set) else repr(value))


def read_code_cells(script: Path, end: int | None = None) -> dict[int, str]:
    """The code of a script's cells by their first lines, of those before the line ``end`` if there is one.

    ``without_hidden`` leaves what a page has of it.
    """
    blocks = split_code_and_text_blocks(str(script))[1]
    return {line: code for kind, code, line in blocks if kind == "code" and (end is None or line < end)}


def without_hidden(code: str) -> str:
    """A cell without its hidden lines and without comments for sphinx-gallery."""
    return remove_config_comments(show_code(code).code)


def make_page(
    script: Path,
    target: Path,
    settings: Mapping[str, Any],
    end: int | None,
    compiler: type,
) -> None:
    """Run ``script`` here and write its page, images, notebook and archive to ``target``. What is patched stays so.

    :param target: the folder of a chapter, in ``gallery`` in the source folder that the page's paths are relative to.
    :param end: the line from which on code is not run: the page shows it without outputs. None to run all.
    :param compiler: a kind of ``codeop.Compile``, which gets the syntax trees of cells.
    :raises Exception: what the script raised, with its traceback.
    """
    running = list(read_code_cells(script, end))

    def stop_after_last(block: Any, block_vars: dict[str, Any], gallery_conf: Mapping[str, Any]) -> str:
        """A scraper, called after each cell."""
        if end is not None and block.lineno == running[-1]:
            block_vars["execute_script"] = False
        return ""

    def fill_cells(notebook: dict[str, Any], blocks: Any, *others: Any) -> None:
        raising = {without_hidden(code) for code in read_code_cells(script).values() if show_code(code).raises}
        fill_notebook(read_script(script), notebook["cells"], blocks, raising)

    settings = {**settings, "image_scrapers": (*settings["image_scrapers"], stop_after_last)}
    settings |= {"src_dir": str(target.parents[1]), "plot_gallery": bool(running)}
    settings |= {"abort_on_example_error": True, "run_stale_examples": False}
    target.mkdir(parents=True, exist_ok=True)
    py_source_parser.remove_ignore_blocks = _remove_hidden
    gen_rst.codeop = SimpleNamespace(Compile=compiler)
    gen_rst.zip_files = _zip_without_times
    scrapers._find_image_ext = _find_graph_or_image
    sphinx_gallery.notebook.fill_notebook = fill_cells
    gen_rst.generate_file_rst(script.name, target, script.parent, settings)


def _find_graph_or_image(path: Any, find_image: Callable[..., Any] = scrapers._find_image_ext) -> tuple[Any, str]:
    """The file that stands for the image ``path``, and its kind: sphinx-gallery looks whether a scraper has written it."""
    graph = Path(path).with_suffix(".graph.json")
    return (graph, "json") if graph.exists() else find_image(path)


def _zip_without_times(files: list[str], target: Any, relative_to: Any) -> None:
    """An archive for download whose files have no times, so that every build makes the same bytes."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(map(Path, files)):
            info = zipfile.ZipInfo(path.relative_to(relative_to).as_posix(), date_time=(1980, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, path.read_bytes())


def _remove_hidden(content: str, remove: Callable[[str], str] = py_source_parser.remove_ignore_blocks) -> str:
    """Instead of sphinx-gallery's own, which keeps the indentation of code from whose ``try`` it has taken the line."""
    removed = remove(content)  # it refuses marks without their counterpart
    return removed if removed == content else show_code(content).code


def refuse_to_run(refusal: Callable[[str], str]) -> None:
    """Have sphinx-gallery end the build where it would run a script itself, from here on in this process.

    :param refusal: what to say, from the path of the script.
    """

    def refuse(blocks: Any, script_vars: Mapping[str, Any], *others: Any) -> Any:
        raise Refusal(refusal(script_vars["src_file"]))

    gen_rst.execute_script = refuse


def put_broken_thumbnail(images: Path, stem: str) -> None:
    """Put sphinx-gallery's own picture of a broken example on the card of the page ``stem``."""
    picture = Path(glr_path_static()) / "broken_example.png"
    thumbnail = images / "thumb" / f"sphx_glr_{stem}_thumb.png"
    thumbnail.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(picture, thumbnail)


def mark_current(copied_script: Path) -> None:
    """Make sphinx-gallery take the outputs beside ``copied_script`` for those of the script, so that it runs nothing."""
    marker = copied_script.with_name(copied_script.name + ".md5")
    marker.write_text(get_md5sum(copied_script, mode="t"), encoding="utf-8")
