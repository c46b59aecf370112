"""Tests a source distribution and a wheel outside the repository. `make package` runs it.

``python -m tests.packaging.check DIRECTORY`` checks the contents of both and the wheel's size.
Then, in a new environment, it runs the node, the quick benchmark and the README's Python samples.
"""

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Limit in bytes for an unpacked wheel. It has 14.6 million bytes with Arbitrum.
INSTALLED_LIMIT = 16_000_000
NEEDED = (
    "fastevm/evm/machine.pyi",
    "fastevm/py.typed",
    "fastevm/core/interpreter/opcodes.pxd",
    "fastevm/node/bip39_english.txt",
    "fastevm/rpc/__init__.py",
    "fastevm/rpc/explorer/assets/index.html",
    "fastevm/rpc/explorer/assets/main.js",
    "fastevm/bench/__init__.py",
)
SOURCES = (
    "setup.py",
    "build_backend.py",
    "pyproject.toml",
    "fastevm/evm/machine.pyx",
    "fastevm/core/primitives/intrinsics.h",
    "fastevm/core/interpreter/dispatch.h",
    "fastevm/core/interpreter/loop.pyx",
    "fastevm/core/interpreter/loop.pyx.in",
    "generated/fastevm/evm/machine.c",
    "generated/fastevm/_cython.c",
)
UNWANTED = re.compile(r"(rpc|bench|tests|examples|build|fastevm/testing)/|.*\.c$")
UNWANTED_SOURCES = re.compile(r"(rpc|bench|tests|examples|build|(generated/)?fastevm/testing)/")
SAMPLES = re.compile(r"```python\n(.*?)```", re.S)


def check_names(
    names: Iterable[str], needed: Iterable[str], forbidden: re.Pattern[str], archive: Path
) -> None:
    """Checks that an archive has all needed files and no forbidden files."""
    found = set(names)
    missing = [name for name in needed if name not in found]
    unwanted = sorted(name for name in found if forbidden.match(name))
    if missing or unwanted:
        sys.exit(f"{archive.name}: missing {missing}, unwanted {unwanted[:10]}")


def check_archives(folder: Path) -> Path:
    """Checks both archives and returns the wheel."""
    (source,) = folder.glob("*.tar.gz")
    (wheel,) = folder.glob("*.whl")
    with tarfile.open(source) as archive:
        members = archive.getmembers()
        names = [member.name.partition("/")[2] for member in members]
        check_names(names, (*NEEDED, *SOURCES), UNWANTED_SOURCES, source)
        links = [member.name for member in members if member.issym() or member.islnk()]
        if links:
            sys.exit(f"{source.name}: links instead of files: {links[:10]}")
    with zipfile.ZipFile(wheel) as archive:
        check_names((entry.filename for entry in archive.infolist()), NEEDED, UNWANTED, wheel)
        size = sum(entry.file_size for entry in archive.infolist())
    print(f"{wheel.name}: {wheel.stat().st_size:,} bytes, {size:,} installed")
    if size > INSTALLED_LIMIT:
        sys.exit(f"the wheel unpacks to more than {INSTALLED_LIMIT:,} bytes")
    return wheel


def check_node(command: Path, place: str) -> None:
    """Checks that a node starts, answers and exits."""
    node = subprocess.Popen(
        [command, "node", "--port", "0"], cwd=place, stdout=subprocess.PIPE, text=True
    )
    try:
        assert node.stdout is not None
        url = next(
            f"http://{found[1]}"
            for line in node.stdout
            if (found := re.search(r"Listening on (\S+)", line))
        )
        body = b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}'
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert b'"result":"0x' in answer.read()
    finally:
        node.terminate()
        if node.wait(20) != 0:
            sys.exit("the node did not end well")


def main(folder: str) -> None:
    """Checks the archives of a folder, then the installed wheel."""
    wheel = check_archives(Path(folder).resolve())
    samples = SAMPLES.findall((ROOT / "README.md").read_text())
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "FASTEVM"))}
    with tempfile.TemporaryDirectory() as place:
        venv.create(f"{place}/venv", with_pip=True)
        programs = Path(place) / "venv/bin"

        def run(*command: str) -> None:
            subprocess.run(
                [programs / command[0], *command[1:]], cwd=place, env=environment, check=True
            )

        run("pip", "install", "--quiet", str(wheel))
        run("python", "-c", "import fastevm; assert 'site-packages' in fastevm.__file__")
        run("python", str(ROOT / "tests/packaging/installed.py"))
        for sample in samples:
            run("python", "-c", sample)
        check_node(programs / "fastevm", place)
        run("fastevm", "bench", "--quick")
    print(f"{len(samples)} samples, a node and the quick benchmark run as installed")


if __name__ == "__main__":
    main(sys.argv[1])
