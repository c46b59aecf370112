"""Programs of the documentation run and are typed; every page is in the site's list."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fastevm.rpc.dispatch.registry import METHODS

from .shared_data import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(
    [DOCS / "index.md", *(p for folder in ("tutorials", "how-to", "concepts")
                          for p in (DOCS / folder).glob("*.md"))]
)  # fmt: skip
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
BLOCK = re.compile(r'```python(?: title="([\w.]+)")?\n(.*?)```', re.S)
SECONDS = 120


def blocks(page: Path) -> list[tuple[str, str]]:
    """The programs of a page: the name of a test file, or nothing, and the code."""
    return BLOCK.findall(page.read_text())


PROGRAMS = [
    pytest.param(name, code, id=f"{page.stem} {number}")
    for page in PAGES
    for number, (name, code) in enumerate(blocks(page), 1)
]


def run(folder: Path, *words: str) -> str:
    """What a program printed; its complaint where it failed."""
    environment = {
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
    }
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=SECONDS, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("name", "code"), PROGRAMS)
def test_a_program_runs_as_it_stands(name: str, code: str, tmp_path: Path) -> None:
    if not name:
        run(tmp_path, sys.executable, "-c", code)
        return
    (tmp_path / name).write_text(code)
    by_name = () if is_installed() else ("-p", "fastevm.integrations.pytest_plugin")
    assert "passed" in run(tmp_path, sys.executable, "-m", "pytest", "-q", *by_name, name)


def is_installed() -> bool:
    """Whether pytest finds the plugin by its entry point."""
    from importlib.metadata import entry_points

    return any(found.name == "fastevm" for found in entry_points(group="pytest11"))


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with every program of tutorials and guides, where type checkers find packages."""
    folder = tmp_path_factory.mktemp("programs")
    for page in (path for name in ("tutorials", "how-to") for path in (DOCS / name).glob("*.md")):
        for number, (_, code) in enumerate(blocks(page), 1):
            (folder / f"{page.stem.replace('-', '_')}_{number}.py").write_text(code)
    return folder


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="needs mypy")
def test_programs_of_the_pages_pass_mypy(programs: Path) -> None:
    configured = programs / "mypy.ini"
    configured.write_text(f"[mypy]\nstrict = True\nmypy_path = {ROOT}\n")
    found = sorted(str(path) for path in programs.glob("*.py"))
    assert found
    run(ROOT, sys.executable, "-m", "mypy", "--config-file", str(configured), *found)


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("pyright") is None or shutil.which("node") is None,
    reason="needs pyright and Node.js",
)
def test_programs_of_the_pages_pass_pyright(programs: Path) -> None:
    (programs / "pyrightconfig.json").write_text(
        f'{{"typeCheckingMode": "strict", "extraPaths": ["{ROOT}"], "exclude": []}}'
    )
    run(programs, sys.executable, "-m", "pyright", "--pythonpath", sys.executable, ".")


def test_every_page_is_in_the_list_of_the_site() -> None:
    listed = (ROOT / "mkdocs.yml").read_text()
    found = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    assert [name for name in found if name not in listed] == []
    generated = {"reference/json-rpc.md", "reference/command-line.md", "reference/metrics.md"}
    generated |= {f"notebooks/{path.stem}.md" for path in NOTEBOOKS}
    assert generated <= set(re.findall(r"([\w/-]+\.md)\n", listed))
    named = set(re.findall(r"([\w/-]+\.md)\n", listed)) - generated
    assert named == set(found)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_what_it_printed(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 2
    assert [cell for cell in cells if cell["outputs"] or cell["execution_count"]] == []


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    """The hook that writes pages of reference."""
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_has_every_method_with_a_description(generator: ModuleType) -> None:
    page = generator.methods_page()
    for name in METHODS:
        described = re.search(rf"^### {name}\n\n(.*)\n", page, re.M)
        assert described and len(described[1]) > 10, name
    assert set(generator.EXAMPLES) <= set(METHODS)
    assert page.count("```json") == 2 * len(generator.EXAMPLES)


def test_the_reference_has_every_option_and_metric(generator: ModuleType) -> None:
    page = generator.command_page()
    for option in ("--slice-interval", "--fork-url", "--auth-token", "--data"):
        assert option in page
    assert "fastevm_slice_lateness_ms" in generator.metrics_page()
