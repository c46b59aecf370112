"""Pages of the site that are notebooks, run while the site is built: a hook of MkDocs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

FOLDER = Path(__file__).parent / "notebooks"
SECONDS = 120  # of a cell
FROM_NOTEBOOK = "[This page as a notebook]({name}.ipynb)"


def page(path: Path) -> tuple[str, dict[str, bytes]]:
    """A notebook that has run, as Markdown, and its pictures by name."""
    notebook = nbformat.read(path, as_version=nbformat.NO_CONVERT)
    NotebookClient(
        notebook, timeout=SECONDS, resources={"metadata": {"path": path.parent}}
    ).execute()
    resources = {"output_files_dir": f"{path.stem}_files"}
    text, resources = MarkdownExporter().from_notebook_node(notebook, resources)
    # A picture lies beside the page in the sources, and MkDocs looks for it there.
    text = text.rstrip() + "\n\n" + FROM_NOTEBOOK.format(name=path.stem) + "\n"
    return text, resources.get("outputs", {})


def on_files(files: Any, config: Any) -> Any:
    """Add a page for each notebook, and its pictures."""
    from mkdocs.structure.files import File

    for path in sorted(FOLDER.glob("*.ipynb")):
        text, pictures = page(path)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files
