"""Runs the programs of the pages about clients, unchanged, on a development node.

Hardhat, forge, web3.js, titanoboa, ape and wake are not installed here. `make ecosystem` tests
these clients with other programs.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.max_wait import MAX_WAIT

from .clients.conftest import running_node
from .clients.test_javascript import HERE as JAVASCRIPT
from .clients.test_javascript import needs_javascript
from .pages import commands_of
from .shared_data import ROOT

PAGES = ROOT / "docs" / "clients"
ADDRESS = "http://127.0.0.1:8545"
DEV = ("fastevm", "dev")
CONFIGURATION = re.compile(r"// hardhat\.config")


def programs(page: str, language: str) -> list[str]:
    """Returns the page's programs in a language, without the files of Hardhat projects."""
    text = (PAGES / f"{page}.md").read_text()
    found = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    return [code for code in found if not CONFIGURATION.match(code)]


def run(words: list[str], variables: Mapping[str, str], folder: Path | None = None) -> str:
    """Runs a program. Returns its output. If it fails, the AssertionError contains its errors."""
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=MAX_WAIT, env=variables, cwd=folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_javascript
@pytest.mark.parametrize("page", ["viem", "ethers"])
def test_javascript_of_a_page(page: str) -> None:
    (code,) = programs(page, "js")
    with running_node(module=DEV) as url:
        words = ["node", "--input-type=module", "--eval", code.replace(ADDRESS, url)]
        assert run(words, os.environ, JAVASCRIPT)


def test_python_of_a_page() -> None:
    (code,) = programs("web3-py", "python")
    with running_node(module=DEV) as url:
        words = [sys.executable, "-c", code.replace(ADDRESS, url)]
        assert run(words, os.environ) == "1\n"


@needs_javascript
def test_commands_of_a_page() -> None:
    program = shutil.which("cast", path=str(JAVASCRIPT / "node_modules" / ".bin"))
    assert program is not None
    with running_node(module=DEV) as url:
        for line in commands_of((PAGES / "cast.md").read_text()):
            name, *words = shlex.split(line)
            assert name == "cast"
            assert run([program, *words], os.environ | {"ETH_RPC_URL": url})


def test_every_page_is_in_the_navigation() -> None:
    site = (ROOT / "mkdocs.yml").read_text()
    assert [page.name for page in PAGES.glob("*.md") if f"clients/{page.name}" not in site] == []


def test_a_wallet_and_a_page_find_the_chain_of_the_page() -> None:
    """`fastevm dev` has the page's network settings, and accepts browser extensions."""
    page = (PAGES / "wallets.md").read_text()
    shown = re.search(r'chainId: "(0x[0-9a-f]+)"', page)
    assert shown is not None and f"`{int(shown[1], 16)}`" in page and ADDRESS in page
    body = b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}'
    with running_node(module=DEV) as url:
        for origin in (
            "chrome-extension://nkbihfbeogaeaoehlefnkodbefgpgknn",
            "http://localhost:3000",
        ):
            headers = {"Content-Type": "application/json", "Origin": origin}
            request = urllib.request.Request(url, body, headers)
            with urllib.request.urlopen(request, timeout=MAX_WAIT) as answer:
                assert json.load(answer)["result"] == shown[1]
                assert answer.headers["Access-Control-Allow-Origin"] in ("*", origin)
