"""Runs a PostgreSQL server for tests: Debian's package, on a loopback port, not as root."""

import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Final

import psycopg

from tests.max_wait import MAX_WAIT

USERS: Final = ("postgres", "nobody")  # users to run the server as, if the tests run as root
FAST: Final = ("fsync=off", "full_page_writes=off")
CONNECTIONS: Final = 100
EMPTY: Final = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid();
    DROP SCHEMA public CASCADE;
    CREATE SCHEMA public AUTHORIZATION pg_database_owner;
    GRANT USAGE ON SCHEMA public TO PUBLIC
"""


def programs() -> Path | None:
    """Returns the folder of initdb and postgres, or None if the package is not installed."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists()), None)


class Server:
    """A PostgreSQL server with its files in a temporary folder.

    ``safe``: committed data survives a crash.
    """

    def __init__(self, *, safe: bool = False) -> None:
        found = programs()
        assert found is not None
        self._programs, self._safe = found, safe
        self._folder = tempfile.TemporaryDirectory(prefix="payments-postgres-")
        self.data = Path(self._folder.name) / "data"
        self._user = USERS[0] if os.geteuid() == 0 else None
        self._names = itertools.count(1)
        self._free: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None
        if self._user is not None:
            shutil.chown(self._folder.name, self._user)
        Path(self._folder.name).chmod(0o700)
        self._run("initdb", "-D", str(self.data), "-U", "shop", "-A", "trust", "-E", "UTF8")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [self._programs / program, *arguments], check=True, user=self._user,
            cwd=self._folder.name, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        settings = [
            "listen_addresses=127.0.0.1", "unix_socket_directories=",
            f"max_connections={CONNECTIONS}", *(() if self._safe else FAST),
        ]  # fmt: skip
        options = [part for setting in settings for part in ("-c", setting)]
        self._process = subprocess.Popen(
            [self._programs / "postgres", "-D", str(self.data), "-p", str(self.port), *options],
            user=self._user, cwd=self._folder.name,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + MAX_WAIT
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=1).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < deadline, "the server does not start"
                time.sleep(0.05)

    def url(self, name: str) -> str:
        """Returns the URL of a database."""
        return f"postgresql://shop@127.0.0.1:{self.port}/{name}"

    def create(self) -> str:
        """Returns the URL of an empty database."""
        if self._free:
            return self._free.pop()
        name = f"payments_{next(self._names)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def release(self, url: str) -> None:
        """Empties a database, so that `create` can return it again.

        A new database needs 300 files.
        """
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(EMPTY)
        self._free.append(url)

    def kill(self) -> None:
        """Kills the server without a shutdown, like a crash."""
        self._end(signal.SIGQUIT)

    def stop(self) -> None:
        """Stops the server and removes its files."""
        if self._process is not None:  # An unsafe server need not write its data to disk first.
            self._end(signal.SIGINT if self._safe else signal.SIGQUIT)
        self._folder.cleanup()

    def _end(self, how: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(MAX_WAIT)
        self._process = None
