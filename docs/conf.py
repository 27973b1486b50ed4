"""The documentation site, made by ``make docs``. Its sources are found from the root, so that links hold everywhere."""

from __future__ import annotations

import predilect

project = "Predilect"
author = "The Predilect developers"
version = release = predilect.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "docs/index"
include_patterns = [
    "docs/**", "benchmarks/README.md", "benchmarks/results/*.md", "README.md", "CONTRIBUTING.md", "CHANGELOG.md",
]  # fmt: skip
exclude_patterns = [".*", "build", "dist", "src", "tests"]
highlight_language = "text"
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings have them
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_param = False  # names that share a description stay together
napoleon_use_rtype = False

html_theme = "furo"
html_title = "Predilect"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_root"]
html_copy_source = False
html_show_sourcelink = html_show_copyright = False
