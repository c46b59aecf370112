"""Runs published x402 clients, each as a separate program that pays for URLs.

A program reads ``{"key": ..., "urls": [...], "at_once": n}`` from standard input and prints a line
``{"url": ..., "status": ..., "body": ...}`` for each URL. The clients are optional:
FASTEVM_X402_PYPI names a folder filled by ``pip install --target FOLDER 'x402[evm,httpx]'``, and
FASTEVM_X402_NPM a folder in which ``npm install @x402/fetch @x402/evm viem`` was run.
"""

import os
import shutil
import sys
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
PYPI: Final = os.environ.get("FASTEVM_X402_PYPI", "")
NPM: Final = os.environ.get("FASTEVM_X402_NPM", "")


def command(client: str) -> tuple[list[str], dict[str, str]]:
    """Returns command and environment of a client. Skips the test if its package is missing."""
    if client == "pypi":
        if not (Path(PYPI) / "x402").is_dir() or not PYPI:
            pytest.skip("the PyPI package x402 is not installed: set FASTEVM_X402_PYPI")
        return [sys.executable, str(HERE / "pypi.py")], {**os.environ, "PYTHONPATH": PYPI}
    if not (Path(NPM) / "node_modules/@x402/fetch").is_dir() or not NPM:
        pytest.skip("the npm package @x402/fetch is not installed: set FASTEVM_X402_NPM")
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    return [node, str(HERE / "fetch.mjs")], {**os.environ, "FASTEVM_X402_NPM": NPM}
