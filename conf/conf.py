"""Settings of the site, and nothing else. What the site adds to Sphinx is in ``atlas/`` beside this file."""

import doctest
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).parent))

from atlas import toolbox
from atlas.pages import read_pages

toolbox.collect_garbage_seldom()

# -- The site -------------------------------------------------------------------------------------

project = "Autograd Atlas"
author = "the Autograd Atlas authors"
copyright = "the Autograd Atlas authors; code BSD-3-Clause, text CC BY 4.0"

# The one place for the addresses of the site and of its sources. A host sets them; the build does not depend on them.
html_baseurl = os.environ.get("ATLAS_SITE", "https://autograd-atlas.example").removesuffix("/") + "/"
repository = os.environ.get("ATLAS_REPOSITORY", "")
atlas_commit = os.environ.get("ATLAS_COMMIT", "")  # of a build that is published

# -- Extensions -----------------------------------------------------------------------------------

extensions = [
    "myst_nb",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx.ext.doctest",
    "sphinx.ext.intersphinx",
    "sphinx_copybutton",
    "notfound.extension",
    "sphinxext.opengraph",
    "atlas",  # last: what it connects to an event then comes after the others
]

# -- Sources --------------------------------------------------------------------------------------

# sphinx-gallery leaves notebooks beside its pages. MyST-NB would claim them, and their pages would have no figures.
exclude_patterns = ["gallery/**/*.ipynb", "**/GALLERY_HEADER.rst"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3

smartquotes = False  # a message in a title stays as PyTorch prints it
nitpicky = True  # a reference that leads nowhere is a warning, and warnings are errors

# Links to PyTorch's reference, of the release in requirements.txt. A build reads the file, which comes from there:
# curl -o conf/atlas/objects.inv https://docs.pytorch.org/docs/2.13/objects.inv
intersphinx_mapping = {
    "torch": ("https://docs.pytorch.org/docs/2.13/", str(Path(__file__).parent / "atlas" / "objects.inv"))
}

# -- Code that runs -------------------------------------------------------------------------------

nb_execution_mode = "inline"  # {eval} needs it
nb_execution_show_tb = True  # a cell that fails is a warning that names the page and says what was raised
nb_code_prompt_show = nb_code_prompt_hide = "Code behind this"
nb_execution_timeout = 300  # seconds on the clock of one cell, on a busy machine too

doctest_global_setup = "import torch"
doctest_default_flags = doctest.ELLIPSIS | doctest.DONT_ACCEPT_TRUE_FOR_1  # and the message of an error counts
doctest_test_doctest_blocks = ""  # only {doctest} directives: see atlas/checks.py

# sphinx-gallery means the whole path, as of a checkout in "My Documents"; atlas/gallery/scripts.py looks at the names
suppress_warnings = ["sphinx_gallery.space_in_filename"]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",  # from docs/, the source folder
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "subsection_order": [f"../examples/{chapter}" for chapter in read_pages().chapters] + ["*"],
    "within_subsection_order": "atlas.pages.page_order",
    "image_scrapers": ("atlas.gallery.scrapers.scrape_cell",),
    "reset_modules": ("atlas.gallery.scrapers.start_fresh",),
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1e9,  # a time differs with every build
    "write_computation_times": False,  # its page loads scripts from two other sites
}

# -- Pages ----------------------------------------------------------------------------------------

html_theme = "furo"
html_title = project
html_logo = "static/mark.svg"
html_favicon = "static/mark.svg"
templates_path = ["templates"]
html_static_path = ["static", "drawgrad/web", "../docs/_static/expression"]
html_additional_pages = {"figure": "figure.html"}
html_css_files = ["graph.css", "graph_player.css", "graph_live.css", "plot.css", "atlas.css"]
# Each script with what is in the text of a page that needs it: a pattern, empty for every page.
_own_scripts = {
    "search_box.js": "",
    "drawers.js": "",
    "scrollable.js": "",
    "filters.js": r'<form class="filter\b',
    "upright.js": r"\bdata-upright=",  # before what reads where things stand
    "graph_player.js": r"\bgraph-bar\b",
    "graph_code.js": r'\{"made_by":',
    "graph_live.js": r"\bgraph-whose\b",
    "memory_cells.js": r"\bmemory-cells\b",
    "predict.js": '<form class="predict',
    "calculator.js": '<form class="calculator',
    **dict.fromkeys(("dagre.min.js", "language.js", "page.js"), '<form class="typed'),
    "learning_path.js": "",
    "copy_page.js": "",
}
atlas_scripts = _own_scripts | {  # and those of extensions
    "clipboard.min.js": '<div class="highlight"',
    "copybutton.js": '<div class="highlight"',
    "design-tabs.js": r"\bsd-tab-label\b",
    "sg-tags.js": r"\bdata-sgtags=",
    **dict.fromkeys(("sphinx_highlight.js", "doctools.js"), "(?!)"),  # of Sphinx's search, which no page has
}
html_js_files = [(name, {"defer": "defer"}) for name in _own_scripts]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1d4ed8", "color-brand-content": "#1d4ed8"},
    "dark_css_variables": {"color-brand-primary": "#93b4fd", "color-brand-content": "#93b4fd"},
}
if repository:
    html_theme_options |= {"source_repository": repository, "source_branch": "main", "source_directory": "docs/"}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"

html_math_renderer = "mathml"

copybutton_exclude = ".linenos, .gp, .go, .gd"  # of a diff, it copies the new code: atlas/boxes.py
copybutton_selector = "div:not(.output_area):not(.sphx-glr-script-out) > div.highlight > pre"

notfound_urls_prefix = urlsplit(html_baseurl).path or "/"  # a 404 page is shown at any depth
ogp_site_url = html_baseurl
ogp_site_name = project
ogp_social_cards = {"enable": False}  # they refuse the mark, an SVG
ogp_image = "_static/shared.png"
ogp_image_alt = "The graph of a few scalars with their gradients"
ogp_custom_meta_tags = ['<meta name="twitter:card" content="summary_large_image">']
