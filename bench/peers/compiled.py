"""Builds peers in Go and Rust: geth, its tool `evm`, and our small programs that use geth and revm.

Each program is built once into a folder outside the repository, `FASTEVM_PEER_CACHE` or
~/.cache/fastevm/peers. File names contain the version or a digest of our sources, so a change
causes a new build.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
GETH: Final = "github.com/ethereum/go-ethereum"
GETH_VERSION: Final = "1.17.10"
TOOLCHAINS: Final = {"go": "Go", "cargo": "Rust"}  # command -> what to install
SHOWN_OUTPUT: Final = 2000  # last characters of a failed build's output


class NotBuilt(Exception):
    """A program that is not built, or cannot be built here."""


def cache() -> Path:
    """Returns the folder of all builds."""
    chosen = os.environ.get("FASTEVM_PEER_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fastevm" / "peers"


def digest(folder: Path) -> str:
    """Returns twelve hex digits of a hash of a program's sources."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    return found.hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program to build: a published Go command, or the sources in a folder."""

    name: str
    toolchain: str  # the command of the toolchain
    command: str = ""  # package path of a published Go command
    folder: str = ""  # folder of our sources, beside this file

    @property
    def sources(self) -> Path:
        """The folder that contains our sources of the program."""
        return HERE / self.folder

    @property
    def path(self) -> Path:
        """The path of the built program, which may be missing."""
        version = digest(self.sources) if self.folder else GETH_VERSION
        return cache() / f"{self.name}-{version}" / self.name

    def found(self) -> Path:
        """Returns the built program. Raises NotBuilt if it is missing."""
        path = self.path
        if not path.exists():
            raise NotBuilt(
                f"{self.name} is not built: there is no {path}; "
                f"`python -m fastevm.bench.peers {self.name}` builds it"
            )
        return path

    def build(self) -> Path:
        """Builds the program if it is missing.

        Raises NotBuilt if the toolchain or the sources are missing.
        """
        path = self.path
        if path.exists():
            return path
        if shutil.which(self.toolchain) is None:
            raise NotBuilt(f"{TOOLCHAINS[self.toolchain]} is not installed")
        if self.folder and not self.sources.is_dir():
            raise NotBuilt("its sources are in a clone of the repository only")
        target = path.parent.with_suffix(f".{os.getpid()}")
        target.mkdir(parents=True)
        try:
            if self.toolchain == "cargo":
                self.build_with_cargo(target)
            else:
                self.build_with_go(target)
            path.parent.mkdir(exist_ok=True)
            (target / self.name).replace(path)  # two builds may run at the same time
        finally:
            shutil.rmtree(target, ignore_errors=True)
        return path

    def build_with_go(self, target: Path) -> None:
        if self.command:
            # GOBIN installs the command under its own name, which is also the program's name.
            run(["go", "install", self.command], HERE, GOBIN=str(target), GOFLAGS="")
        else:
            run(["go", "build", "-o", str(target / self.name), "."], self.sources, GOFLAGS="")

    def build_with_cargo(self, target: Path) -> None:
        run(
            ["cargo", "build", "--release", "--locked", "--quiet"],
            self.sources,
            CARGO_TARGET_DIR=str(cache() / "cargo"),
        )
        shutil.copy2(cache() / "cargo" / "release" / self.name, target / self.name)


PROGRAMS: Final = {
    program.name: program
    for program in (
        Compiled("geth", "go", command=f"{GETH}/cmd/geth@v{GETH_VERSION}"),
        Compiled("evm", "go", command=f"{GETH}/cmd/evm@v{GETH_VERSION}"),
        Compiled("on-geth", "go", folder="geth_program"),
        Compiled("on-revm", "cargo", folder="revm_program"),
    )
}


def run(command: list[str], folder: Path, **environment: str) -> None:
    """Runs a build. If it fails, raises NotBuilt with the end of the build's output."""
    done = subprocess.run(
        command, cwd=folder, env=os.environ | environment, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip
    if done.returncode:
        raise NotBuilt(f"`{' '.join(command)}` failed: {done.stdout[-SHOWN_OUTPUT:]}")
