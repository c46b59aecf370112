"""Tests that documented programs run and pass type checks, and that all pages can be reached."""

import argparse
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from fastevm.cli.command_line import parser
from fastevm.rpc.dispatch.registry import METHODS
from tests.max_wait import MAX_WAIT

from .pages import DOCS, blocks_of, pages
from .shared_data import ROOT

# Pages whose programs other tests run, because they need nodes on the page's ports, or run in
# `ape`.
TESTED = (
    "arbitrum.md",
    "base.md",
    "fork.md",
    "preconfirmations.md",
    "clients/web3-py.md",
    "clients/ape.md",
    "clients/wake.md",
)
PAGES = [path for path in pages() if path.relative_to(DOCS).as_posix() not in TESTED]
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
# The longest line of code that fits between both sidebars in a window of 1280 pixels.
COLUMNS = 100


def blocks(page: Path) -> list[tuple[str, str]]:
    """Returns the programs of a page: the name of the file (or an empty text), and the code."""
    found = blocks_of(page.read_text())
    return [(block.title, block.code) for block in found if block.language == "python"]


PROGRAMS = [
    pytest.param(name, code, id=f"{page.relative_to(DOCS).as_posix()} {number}")
    for page in PAGES
    for number, (name, code) in enumerate(blocks(page), 1)
]


def run(folder: Path, *words: str) -> str:
    """Runs a program. Returns its output, or its standard error if it failed."""
    environment = {
        "PYTHONPATH": str(ROOT),
        "HOME": str(folder),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
    }
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=MAX_WAIT, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("name", "code"), PROGRAMS)
def test_a_program_runs_twice_as_it_stands(name: str, code: str, tmp_path: Path) -> None:
    """Readers run a program again in the same folder, so a second run must work, too."""
    if "import boa\n" in code:
        pytest.importorskip("boa", reason='needs titanoboa: pip install "fastevm[boa]"')
    if '"tracer": PROGRAM' in code:
        pytest.importorskip("quickjs", reason='needs quickjs: pip install "fastevm[javascript]"')
    if not name:
        for _ in range(2):
            run(tmp_path, sys.executable, "-c", code)
        return
    (tmp_path / name).write_text(code)
    by_name = () if is_installed() else ("-p", "fastevm.integrations.pytest_plugin")
    assert "passed" in run(tmp_path, sys.executable, "-m", "pytest", "-q", *by_name, name)


def is_installed() -> bool:
    """Returns whether pytest finds fastevm's plugin by its entry point."""
    from importlib.metadata import entry_points

    return any(found.name == "fastevm" for found in entry_points(group="pytest11"))


STUB = "from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n"
UNTYPED = ("boa", "eth", "eth_tester")  # libraries that have no type annotations
TYPED = ("tutorials/*.md", "how-to/*.md", "coming-from-*.md")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provides a folder with the programs of all tutorials and guides, for type checkers."""
    folder = tmp_path_factory.mktemp("programs")
    for name in UNTYPED:
        (folder / "typings" / name).mkdir(parents=True)
        (folder / "typings" / name / "__init__.pyi").write_text(STUB)
    for page in (path for pattern in TYPED for path in DOCS.glob(pattern)):
        for number, (_, code) in enumerate(blocks(page), 1):
            (folder / f"{page.stem.replace('-', '_')}_{number}.py").write_text(code)
    return folder


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="needs mypy")
def test_programs_of_the_pages_pass_mypy(programs: Path) -> None:
    configured = programs / "mypy.ini"
    configured.write_text(f"[mypy]\nstrict = True\nmypy_path = {ROOT}:{programs / 'typings'}\n")
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
        f'{{"typeCheckingMode": "strict", "extraPaths": ["{ROOT}"], "exclude": ["typings"]}}'
    )
    run(programs, sys.executable, "-m", "pyright", "--pythonpath", sys.executable, ".")


def test_every_page_is_in_the_navigation_once(hooks: dict[str, ModuleType]) -> None:
    listed = re.findall(r"([\w/-]+\.md)(?=\n|  #)", (ROOT / "mkdocs.yml").read_text())
    written = {path.relative_to(DOCS).as_posix() for path in pages()}
    generated = {f"{hooks['rpc_reference'].FOLDER}/index.md", *hooks["reference"].PAGES}
    generated |= set(hooks["repository"].DOCUMENTS)
    generated |= {f"notebooks/{path.stem}.md" for path in NOTEBOOKS}
    assert sorted(listed) == sorted(written | generated)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(DOCS).as_posix())
def test_code_fits_the_page(page: Path) -> None:
    lines = [line for block in blocks_of(page.read_text()) if block.language != "json"
             for line in block.code.splitlines()]  # fmt: skip
    assert [line for line in lines if len(line) > COLUMNS] == []


GUIDES = [page for page in pages() if page != DOCS / "index.md"]


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_begins_with_what_its_reader_can_do_then(page: Path) -> None:
    _, _, first, *_ = page.read_text().splitlines()
    assert first.startswith(("After this page ", "After this tutorial ")), first
    assert "This page " not in page.read_text()


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(DOCS).as_posix())
def test_tables_have_titles(page: Path) -> None:
    """A screen reader reads the title of the column before each cell."""
    titles = re.findall(r"^(\|.*\|)\n\|[-|: ]+\|$", page.read_text(), re.M)
    assert [row for row in titles if re.search(r"\|\s*\|", row)] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_what_it_printed(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 2
    assert [cell for cell in cells if cell["outputs"] or cell["execution_count"]] == []


@pytest.fixture(scope="module")
def hooks() -> dict[str, ModuleType]:
    """Returns the MkDocs hooks that write pages: name -> module."""
    found = {}
    for name in ("reference", "rpc_reference", "repository"):
        spec = importlib.util.spec_from_file_location(name, DOCS / f"hooks/{name}.py")
        assert spec is not None and spec.loader is not None
        found[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found[name])
    return found


def test_the_reference_has_every_method_with_a_description(hooks: dict[str, ModuleType]) -> None:
    generator = hooks["rpc_reference"]
    made = generator.pages()
    for name in METHODS:
        page = made[f"{generator.FOLDER}/{name.partition('_')[0]}.md"]
        described = re.search(rf"^## {name}\n\n(.*)\n", page, re.M)
        assert described and len(described[1]) > 10, name
        assert f"#{name.lower()})" in made[f"{generator.FOLDER}/index.md"]
    assert set(generator.EXAMPLES) <= set(METHODS)
    assert sum(page.count("```json") for page in made.values()) == 2 * len(generator.EXAMPLES)


def test_methods_and_options_of_a_development_chain_exist() -> None:
    page = (DOCS / "how-to/development-chain.md").read_text()
    named = set(re.findall(r"`((?:anvil|evm|hardhat|fastevm)_\w+)`", page))
    assert len(named) > 30 and sorted(named - set(METHODS)) == []
    command = parser("dev")
    words = set(re.findall(r"`(--[a-z0-9-]+)", page))
    assert len(words) > 10 and sorted(words - set(_options_of(command))) == []


def _options_of(top: argparse.ArgumentParser) -> Iterator[str]:
    """Yields the options of a parser that has no subcommands."""
    (commands,) = (each for each in top._actions if isinstance(each, argparse._SubParsersAction))
    ((_, command),) = commands.choices.items()
    command.filled()
    for action in command._actions:
        yield from action.option_strings


def test_each_namespace_is_in_the_navigation(hooks: dict[str, ModuleType]) -> None:
    generator = hooks["rpc_reference"]
    index = {"JSON-RPC": f"{generator.FOLDER}/index.md"}
    ((reference,),) = (
        each.values() for each in generator.with_namespaces([{"R": ["a.md", index]}])
    )
    spaces = [next(iter(each)) for each in reference[1]["JSON-RPC"]]
    assert spaces == ["Overview", *generator.namespaces()]


def test_the_reference_has_every_option_and_metric(hooks: dict[str, ModuleType]) -> None:
    page = hooks["reference"].command_page()
    for option in ("--slice-interval", "--fork-url", "--auth-token", "--data"):
        assert option in page
    assert "fastevm_slice_lateness_ms" in hooks["reference"].metrics_page()
