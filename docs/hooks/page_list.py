"""MkDocs hook: writes `llms.txt`, the list of pages for language models (llmstxt.org)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FILE = "llms.txt"


def sentence(markdown: str) -> str:
    """The first sentence after the title of a page."""
    paragraphs = [part for part in markdown.split("\n\n") if part.strip()]
    text = next((part for part in paragraphs if part[0].isalpha()), "")
    return " ".join(text.split()).split(". ")[0].rstrip(".")


def listed(items: Any, level: int = 2) -> list[str]:
    """The lines of a part of the navigation: pages before sections."""
    lines = [
        f"- [{item.title}]({item.url or './'}): {sentence(item.markdown or '')}"
        for item in items
        if item.is_page
    ]
    for item in items:
        if item.is_section:
            lines += ["", f"{'#' * level} {item.title}", "", *listed(item.children, level + 1)]
    return lines


def on_nav(nav: Any, config: Any, files: Any) -> Any:
    """Keeps the navigation until all pages are rendered."""
    config["extra"]["page_list"] = nav
    return nav


def on_post_build(config: Any) -> None:
    """Writes the list into the site."""
    head = [f"# {config['site_name']}", "", f"> {config['site_description']}"]
    lines = head + listed(config["extra"]["page_list"].items)
    (Path(config["site_dir"]) / FILE).write_text("\n".join(lines) + "\n")
