"""Selects the stores on which payment tests run, and provides them.

A module with ``STORES = BOTH`` runs on SQLite and on PostgreSQL. With FASTEVM_PAYMENT_STORES=all,
every module does.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from .databases import Server, programs

SQLITE: Final = ("sqlite",)
BOTH: Final = ("sqlite", "postgresql")
EVERYWHERE: Final = os.environ.get("FASTEVM_PAYMENT_STORES") == "all"


def pytest_generate_tests(metafunc: Any) -> None:
    """Parametrises each test with the stores of its module."""
    if "store_kind" in metafunc.fixturenames:
        wanted = BOTH if EVERYWHERE else getattr(metafunc.module, "STORES", SQLITE)
        metafunc.parametrize("store_kind", wanted, scope="session")


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """Provides a PostgreSQL server for the whole run.

    Skips if Debian's package postgresql is not installed.
    """
    if programs() is None:
        pytest.skip("no server of PostgreSQL: install the package postgresql")
    server = Server()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def store_url(store_kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """Provides the URL of an empty store."""
    if store_kind == "sqlite":
        yield f"sqlite:///{tmp_path / 'payments.db'}"
        return
    server: Server = request.getfixturevalue("postgres")
    url = server.create()
    yield url
    server.release(url)
