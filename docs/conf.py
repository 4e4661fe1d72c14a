"""Settings of the site: ``python -m sphinx -W docs site``.

MyST reads the Markdown, furo is the theme (light, dark and narrow screens, no file from elsewhere),
sphinx-gallery runs the examples, and formulas become SVG.
"""

import os
import sys
from importlib.metadata import version as version_of
from pathlib import Path

# Examples run here. Beside other programs, BLAS's threads wait for each other ten times as long as
# one computes; NumPy's reads this as it is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # where docs.site lies

project = "npformer"
author = "The npformer maintainers"
project_copyright = author
version = release = version_of("npformer")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "docs.site.formulas",
    "docs.site.dark_pictures",
    "docs.site.search",
    "docs.site.languages",
    "docs.site.training_step",
    "docs.site.front_page",
    "docs.site.favicon",
    "docs.site.live",
    "docs.site.own_sentence",
    "docs.site.notebooks",
    "docs.site.line_by_line",
    "docs.site.code_lines",
    "docs.site.copied",
    "docs.site.links",
    "docs.site.example_report",
    "docs.site.example_play",
    "docs.site.reference",
    "docs.site.docstrings",
    "docs.site.typeset",
    "docs.site.machine_on_pages",
]
exclude_patterns = ["_build", "gallery/*.ipynb", "**/README.txt"]
myst_enable_extensions = ["dollarmath", "attrs_block"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
suppress_warnings = ["config.cache"]
# A name in single backticks in a docstring is a link if there is something of that name.
default_role = "py:obj"
smartquotes = False
autodoc_default_options = {
    "members": True,
    "show-inheritance": True,
    "ignore-module-all": True,  # a name is described where it is defined
}
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_inherit_docstrings = False
autodoc_preserve_defaults = True
viewcode_follow_imported_members = False  # nor is a table's source that of its class
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
add_module_names = False  # each section of the reference says which module it is about
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = "npformer"
html_math_renderer = "svg"
html_static_path = ["_static"]
html_favicon = "_static/favicon.svg"
html_css_files = ["npformer.css"]
html_js_files = [("copy.js", {"defer": "defer", "priority": 900})]  # after the copy buttons
# What is copied can be run: not what a block prints, nor excerpts, which are marked `py`.
copybutton_selector = ", ".join(f"div.highlight-{kind} pre" for kind in ("python", "Python", "sh"))
copybutton_exclude = ".linenos, summary"  # checks are folded below a summary
html_search_scorer = str(ROOT / "docs" / "site" / "scorer.js")
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
pygments_style = "friendly"
pygments_dark_style = "monokai"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "download_all_examples": False,
    "reset_modules": ("matplotlib", "docs.site.gallery.style"),
    "reset_modules_order": "before",
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,  # its page would fetch scripts from elsewhere
    "within_subsection_order": "docs.site.gallery.by_level",
    "abort_on_example_error": True,
    "parallel": 2,  # examples, each in a process, by joblib, which scikit-learn brings
}
