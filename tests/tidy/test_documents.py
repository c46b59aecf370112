"""Tests that documents stay short, and that every path in them exists."""

import re

import pytest

from .sources import ROOT, files

MOST_LINES_OF_ARCHITECTURE = 120
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "fastevm/ARCHITECTURE.md")
# A path in backticks: it has a folder, or the suffix of a source file.
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:pyx|pxd|pyi|py|h|md|json))`")
# Such a path contains a placeholder for the name of a new file.
PLACEHOLDER = re.compile(r"NAME|N\b|KIND")
# Paths of files that are generated, or that the repository does not contain.
MADE = ("build/", "shared", "fixtures/", "rpc-compat/", "genesis.json")
# folders that a path in a document may be relative to
TOPS = ("", "fastevm/", "fastevm/core/primitives/")
NAMES = {path.name for path in files(".py", ".pyx", ".pxd", ".h")}
RECIPES = (
    "an opcode", "an EIP", "a fork", "a precompile", "an RPC method",
    "an option of a command", "a JSON format", "a benchmark case",
)  # fmt: skip
RECIPE_LINES = 10


def paths_of(document: str) -> list[str]:
    found = PATH.findall((ROOT / document).read_text())
    return [path for path in found if not path.startswith(MADE)]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_path_exists(document: str) -> None:
    for path in paths_of(document):
        place = path
        while PLACEHOLDER.search(place):
            place = place.rpartition("/")[0]
        found = any((ROOT / (top + place)).exists() for top in TOPS)
        assert found or ("/" not in path and path in NAMES), path


def test_the_architecture_fits_a_short_read() -> None:
    lines = (ROOT / "fastevm/ARCHITECTURE.md").read_text().count("\n")
    assert lines <= MOST_LINES_OF_ARCHITECTURE


def test_there_is_a_short_recipe_for_each_kind_of_change() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    recipes = dict(re.findall(r"^## Adding (.*?)\n\n(.*?)(?=\n## |\Z)", text, re.M | re.S))
    assert tuple(recipes) == RECIPES
    for name, recipe in recipes.items():
        assert len(recipe.strip().splitlines()) <= RECIPE_LINES, name
        assert PATH.search(recipe), f"{name}: names no file"


LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)")
MERCHANT_PAGES = ("docs/payments/*.md", "docs/tutorials/take-a-payment.md", "examples/*.md")


def test_links_of_the_payment_pages_lead_to_files_of_the_clone() -> None:
    pages = [page for pattern in MERCHANT_PAGES for page in sorted(ROOT.glob(pattern))]
    links = [(page, link) for page in pages for link in LINK.findall(page.read_text())]
    assert len(links) > 20
    assert [link for page, link in links if not (page.parent / link).exists()] == []
