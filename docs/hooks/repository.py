"""MkDocs hook: documents of the repository as pages, and links that edit a page."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
BRANCH: Final = "main"
URL_NAMES: Final = ("Source", "Repository")  # keys of [project.urls] in pyproject.toml
DOCUMENTS: Final = {
    "contributing/index.md": "CONTRIBUTING.md",
    "contributing/architecture.md": "fastevm/ARCHITECTURE.md",
    "contributing/changelog.md": "CHANGELOG.md",
    "payments/first-hour.md": "examples/MERCHANT_FIRST_HOUR.md",
    "payments/security.md": "fastevm/payments/SECURITY.md",
}
"""Pages of the site and the documents that they show."""


def repository_url() -> str | None:
    """The URL of the repository in pyproject.toml, or None if it names none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    urls = project.get("urls", {})
    return next((urls[name].rstrip("/") for name in URL_NAMES if name in urls), None)


def on_config(config: Any) -> Any:
    """Sets where pages are edited. With `repo_url` each page would ask GitHub for its stars."""
    url = repository_url()
    if url is not None:
        config["edit_uri"] = f"{url}/edit/{BRANCH}/docs/"
    return config


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Turns links to documents and to pages, as they work in a clone, into links of the site."""
    source = page.file.src_uri
    here = Path("docs", source).parent
    if source in DOCUMENTS:
        here = Path(DOCUMENTS[source]).parent
    pages = {document: made for made, document in DOCUMENTS.items()}

    def moved(link: re.Match[str]) -> str:
        target = os.path.normpath(here / link[1])
        made = pages.get(target)
        if made is None and source in DOCUMENTS and target.startswith("docs/"):
            made = target.removeprefix("docs/")
        if made is None:
            return link[0]
        return f"]({os.path.relpath(made, Path(source).parent)}{link[2] or ''})"

    return re.sub(r"\]\(([^)#:\s]+\.md)(#[^)\s]*)?\)", moved, markdown)


def on_files(files: Any, config: Any) -> Any:
    """Adds a page for each document. Its edit link leads to the document."""
    from mkdocs.structure.files import File

    for page, document in DOCUMENTS.items():
        made = File.generated(config, page, content=(ROOT / document).read_text())
        made.edit_uri = f"../{document}"
        files.append(made)
    return files
