"""The file of modules: what it holds is loaded as from where it lies, and not when stale."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fastevm import module_cache
from fastevm.state import layer
from fastevm.tools.module_cache import loaded_specs, packed

PROGRAM = """
import sys
from fastevm import module_cache
module_cache.path = lambda: sys.argv[1]
print(module_cache.use())
import sample.inner
module = sample.inner
print(module.VALUE, module.__file__, module.__cached__, module.__package__)
print(type(module.__spec__.loader).__module__, sample.__path__ == [sys.argv[2]])
"""
CACHED = "fastevm.module_cache True"
ORDINARY = "_frozen_importlib_external True"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of two modules, on the path of this process and of its children."""
    folder = tmp_path / "sample"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "inner.py").write_text("VALUE = 1\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    return folder


def written(file: Path) -> None:
    """Write the file in a process whose modules are the package's and few others."""
    program = (
        "import sys, sample.inner; from fastevm.tools.module_cache import content, loaded_specs\n"
        "open(sys.argv[1], 'wb').write(content(loaded_specs()))"
    )
    subprocess.run([sys.executable, "-c", program, file], check=True)


def loaded(file: Path, package: Path) -> list[str]:
    """What a process prints that loads the package by the file."""
    words = [sys.executable, "-c", PROGRAM, str(file), str(package)]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()


def test_a_module_is_what_it_is_without_the_file(package: Path, tmp_path: Path) -> None:
    file = tmp_path / "modules"
    without = loaded(file, package)
    assert (without[0], without[2]) == ("False", ORDINARY)
    written(file)
    assert loaded(file, package) == ["True", without[1], CACHED]


def test_a_changed_module_comes_from_where_it_lies(package: Path, tmp_path: Path) -> None:
    file = tmp_path / "modules"
    written(file)
    inner = package / "inner.py"
    before = inner.stat()
    inner.write_text("VALUE = 2\n")
    os.utime(inner, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    found = loaded(file, package)
    assert found[1].startswith("2 ")
    assert found[2] == ORDINARY


def test_a_module_that_is_gone_is_not_found(package: Path, tmp_path: Path) -> None:
    file = tmp_path / "modules"
    written(file)
    (package / "inner.py").unlink()
    with pytest.raises(subprocess.CalledProcessError) as failed:
        loaded(file, package)
    assert "No module named 'sample.inner'" in failed.value.stderr


def test_other_folders_make_it_useless(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "modules"
    written(file)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'first'}{os.pathsep}{tmp_path}")
    assert loaded(file, package)[0] == "False"


@pytest.mark.parametrize("length", [0, 4, 8, 40, 400])
def test_a_file_that_is_cut_off_is_not_used(package: Path, tmp_path: Path, length: int) -> None:
    file = tmp_path / "modules"
    written(file)
    file.write_bytes(file.read_bytes()[:length])
    assert loaded(file, package)[0] == "False"


def test_extension_modules_are_named_without_code() -> None:
    name = layer.__name__
    table, _ = packed({name: loaded_specs()[name]})
    origin, size, changed, cached, is_package, _, length = table[name]
    file = Path(origin).stat()
    assert (size, changed) == (file.st_size, file.st_mtime_ns)
    assert (cached, is_package, length) == (None, False, 0)


def test_the_folders_of_the_package_and_the_script_do_not_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = str(Path(module_cache.__file__).parents[1])
    others = [folder for folder in sys.path[1:] if folder != own]
    monkeypatch.setattr(sys, "path", ["/somewhere", *others])
    expected = module_cache.conditions()
    monkeypatch.setattr(sys, "path", ["/elsewhere", own, *others])
    assert module_cache.conditions() == expected
    monkeypatch.setattr(sys, "path", ["/elsewhere", "/first", *others])
    assert module_cache.conditions() != expected
