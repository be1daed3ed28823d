"""Hooks of MkDocs: the pages that lie elsewhere in the repository, and links that point out of ``docs``.

``README.md`` is the first page; ``benchmarks/README.md`` (as measurements) and ``CHANGELOG.md`` are pages too. A link
to any other file of the repository becomes its path, as the site has no copy of it.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]

PAGES = {"index.md": "README.md", "measurements.md": "benchmarks/README.md", "changelog.md": "CHANGELOG.md"}
"""Pages by their name in the site, and the files that they are."""

_PICTURE = re.compile(r"!\[([^\]\n]*)\]\(docs/([^)\s]+)\)")
_LINK = re.compile(r"(?<!!)\[([^\]\n]*)\]\(([^)\s]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that lie elsewhere."""
    for page, source in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_more: Any) -> str:
    """Points links at the site's pages, and takes those that lead out of it away."""
    name = page.file.src_uri
    folder = posixpath.dirname(PAGES.get(name, f"docs/{name}"))
    here = posixpath.dirname(name)
    if folder == "":  # pages from the repository's root show pictures out of ``docs``
        markdown = _PICTURE.sub(r"![\1](\2)", markdown)
    return _LINK.sub(lambda link: _linked(link, folder, here), markdown)


def _linked(link: re.Match[str], folder: str, here: str) -> str:
    text, target = link.groups()
    if "://" in target or target.startswith(("#", "mailto:")):
        return link[0]
    path, hash_sign, anchor = target.partition("#")
    inside = posixpath.normpath(posixpath.join(folder, path))
    page = next((page for page, source in PAGES.items() if source == inside), None)
    if page is None and inside.startswith("docs/") and inside.endswith(".md"):
        page = inside.removeprefix("docs/")
    if page is not None:
        return f"[{text}]({posixpath.relpath(page, here or '.')}{hash_sign}{anchor})"
    return f"{text} (`{inside}`)" if text.strip("`") != inside else f"`{inside}`"
