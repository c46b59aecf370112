"""MkDocs hook: runs the notebooks and adds their output as pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

FOLDER = Path(__file__).parents[1] / "notebooks"
CELL_TIMEOUT = 120  # seconds
NOTEBOOK_LINK = "[This page as a notebook]({name}.ipynb)"


def page(path: Path) -> tuple[str, dict[str, bytes]]:
    """Runs a notebook. Returns it as Markdown, and its pictures by file name."""
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    NotebookClient(
        notebook, timeout=CELL_TIMEOUT, resources={"metadata": {"path": path.parent}}
    ).execute()
    resources = {"output_files_dir": f"{path.stem}_files"}
    text, resources = MarkdownExporter().from_notebook_node(notebook, resources)
    # MkDocs resolves picture paths relative to the folder of the page.
    text = text.rstrip() + "\n\n" + NOTEBOOK_LINK.format(name=path.stem) + "\n"
    return text, resources.get("outputs", {})


def on_files(files: Any, config: Any) -> Any:
    """Adds a page and its pictures for each notebook."""
    from mkdocs.structure.files import File

    for path in sorted(FOLDER.glob("*.ipynb")):
        text, pictures = page(path)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files
