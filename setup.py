"""Builds the extension modules. All compiler directives and compiler flags are here.

Environment:
    FASTEVM_DEBUG=1                       bounds checks, assertions and debug symbols
    FASTEVM_SANITIZE=address,undefined    instrumented build (implies debug symbols)
    FASTEVM_ANNOTATE=1                    write Cython's annotated HTML beside the C files
    FASTEVM_ONLY=fastevm/core/trie/*,...       build only the modules whose source matches a pattern
    FASTEVM_JOBS=N                        parallel compilers (default: all cores)
    FASTEVM_TESTING=1                     build fastevm.testing too, which only tests need

The build generates NAME from a template NAME.in (Tempita, which Cython ships) before Cython runs.
A source distribution contains the generated sources and the C files, so a build from it does not
need Cython. A change of flags or directives, for example by FASTEVM_DEBUG, rebuilds what they
affect. "[n/N]" lines in the output report the progress.
"""

import json
import os
import shlex
import sys
import sysconfig
from fnmatch import fnmatch
from functools import cache
from itertools import count
from pathlib import Path
from shutil import copyfile
from subprocess import run

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.sdist import sdist

ROOT = Path(__file__).parent
DISTRIBUTED = (ROOT / "PKG-INFO").exists()  # only a source distribution has this file
PACKED = Path("generated")  # the C files in a source distribution
GENERATED = PACKED if DISTRIBUTED else Path("build/cython")
FLAGS = Path("build/flags.json")  # of the last build; objects are older than a change of it
DEBUG = os.environ.get("FASTEVM_DEBUG", "") not in ("", "0")
TESTING = os.environ.get("FASTEVM_TESTING", "") not in ("", "0")
SANITIZERS = os.environ.get("FASTEVM_SANITIZE", "")
LINUX = sys.platform == "linux"
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    sys.exit(
        "fastevm does not support free-threaded builds of CPython: msgspec, coincurve and"
        " cryptography have no packages for them before 3.14t, and 3.14 is not supported yet. Use a"
        " usual build; executions release the GIL."
    )
JOBS = int(os.environ.get("FASTEVM_JOBS", "0")) or os.cpu_count() or 1

# CPython's -O3 enables the vectoriser. It loads 16 bytes of words that were just written as four
# 8-byte limbs, which defeats store forwarding: 1.45x slower. Our flags come last and win.
RELEASE_FLAGS = [
    "-O2",
    "-fno-tree-vectorize",
    "-fno-tree-slp-vectorize",
    "-fno-schedule-insns2",
    "-g0",  # CPython's -g takes a third of gcc's time, and nine tenths for the interpreter's loop
]
# gcc on x86 clears structs of known size with "rep stos", whose start takes some 30 cycles.
INLINE_CLEARING = "-mmemset-strategy=vector_loop:512:noalign,libcall:-1:noalign"
# Debuggers and C++ exceptions need the tables, which are 3 % of an installation; its symbols are
# stripped anyway.
NO_UNWIND_TABLES = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]
DEBUG_FLAGS = ["-O1", "-g3", "-fno-omit-frame-pointer", "-UNDEBUG"]
CHECKED_FLAGS = [
    "-O1",
    "-g1",
    "-fno-omit-frame-pointer",
    "-UNDEBUG",
]  # line numbers for a sanitizer's report

# Code, constants and headers share pages. Our modules are small, and a page per segment would cost
# 4 KB of file and a mapping each.
LINK_FLAGS = ["-Wl,-z,noseparate-code"] if LINUX else []

# Cython's utility functions (function objects, argument errors, conversions) are compiled once, in
# this module, and imported by all others.
SHARED_UTILITIES = "fastevm._cython"
TEST_SUPPORT = "fastevm/testing/*"

DIRECTIVES = {
    "language_level": 3,
    "binding": True,
    "embedsignature": False,
    # a generated unpickler restores members of any type and length from forged bytes
    "auto_pickle": False,
    "cdivision": True,
    "wraparound": False,
    "boundscheck": DEBUG,
    "initializedcheck": DEBUG,
    "overflowcheck": False,
    "emit_code_comments": DEBUG,
    "warn.undeclared": False,
    "warn.unreachable": True,
    "warn.maybe_uninitialized": True,
}


class ParallelBuild(build_ext):
    """Compiles extensions in parallel. Installed ones have no symbols and no unwind tables."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = JOBS
        self.started = count(1)
        if not self.inplace and not DEBUG and not SANITIZERS and LINUX:
            for extension in self.extensions:
                extension.extra_compile_args = [*extension.extra_compile_args, *NO_UNWIND_TABLES]
                extension.extra_link_args.append("-Wl,--strip-all")

    def build_extension(self, ext: Extension) -> None:
        print(f"[{next(self.started)}/{len(self.extensions)}] Compiling {ext.name}", flush=True)
        super().build_extension(ext)


class SourceDistribution(sdist):
    """Adds the generated C files, and sources generated from templates, to the distribution."""

    def run(self) -> None:
        write_templates()  # before setuptools lists the files
        super().run()

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        for source in (Path(source) for found in modules() for source in found.sources):
            packed = Path(base_dir, PACKED, source.relative_to(GENERATED))
            packed.parent.mkdir(parents=True, exist_ok=True)
            copyfile(source, packed)


# Hot packages of the engine. Initialising variables there costs 1 % of a storage access and 3 % of
# a division.
UNINITIALISED = ("fastevm/core/interpreter/", "fastevm/core/primitives/", "fastevm/core/state/")


# gcc 12 and clang 16 can initialise every local variable. In a release, zeros limit the effect of
# reading an unset variable. In a checked build, a pattern makes tests fail on such a read.
def initialised_variables() -> str:
    return f"-ftrivial-auto-var-init={'pattern' if DEBUG or SANITIZERS else 'zero'}"


@cache
def compiler_accepts(flag: str) -> bool:
    """Returns whether the C compiler of this build accepts the flag."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    command = [*compiler, "-Werror", flag, "-xc", "-E", "-", "-o", os.devnull]
    return run(command, input=b"", capture_output=True, check=False).returncode == 0


@cache
def compile_flags(source: str = "") -> list[str]:
    """Returns the flags for a source file; "" is a file outside the engine."""
    flags = ["-std=gnu11", "-Wno-unused-function", "-Wno-unreachable-code", "-Wno-psabi"]
    flags += DEBUG_FLAGS if DEBUG else CHECKED_FLAGS if SANITIZERS else RELEASE_FLAGS
    hot = source.startswith(UNINITIALISED) and not DEBUG and not SANITIZERS
    if not hot and compiler_accepts(initialised_variables()):
        flags.append(initialised_variables())
    if not DEBUG and not SANITIZERS and compiler_accepts(INLINE_CLEARING):
        flags.append(INLINE_CLEARING)
    if SANITIZERS:
        flags.append(f"-fsanitize={SANITIZERS}")
        flags.append("-fno-sanitize-recover=undefined")
    return flags


def extension(name: str, sources: list[str]) -> Extension:
    headers = (ROOT / "fastevm").rglob("*.h")
    return Extension(
        name,
        sources,
        include_dirs=["."],
        extra_compile_args=compile_flags(sources[0] if sources else ""),
        extra_link_args=LINK_FLAGS + ([f"-fsanitize={SANITIZERS}"] if SANITIZERS else []),
        libraries=["dl"] if LINUX else [],
        depends=[FLAGS.as_posix(), *(p.relative_to(ROOT).as_posix() for p in headers)],
    )


def templates() -> list[Path]:
    """Returns templates of sources: the build writes NAME from NAME.in in the same folder."""
    return sorted((ROOT / "fastevm").rglob("*.in"))


def write_templates() -> None:
    """Writes the sources that have a template, if they changed.

    A template can use ``opcodes``, the rows of ``core/spec/opcodes.py``, and ``prices``: static gas
    by mnemonic, None if the price differs between forks or a fork does not have the opcode.
    """
    from Cython.Tempita import Template

    from fastevm.core.spec.forks import FORKS, resolve  # these import no compiled module
    from fastevm.core.spec.opcodes import OPCODES

    rules = [resolve(fork).opcodes for fork in FORKS]
    found = {op.mnemonic: {rule.get(op.mnemonic) for rule in rules} for op in OPCODES}
    prices = {name: gas.pop() if len(gas) == 1 else None for name, gas in found.items()}
    for template in templates():
        banner = f"Generated by setup.py from {template.name}: edit that file."
        values = {"banner": banner, "opcodes": OPCODES, "prices": prices}
        text = Template(template.read_text(), name=template.name).substitute(values)
        source = template.with_suffix("")
        if not source.exists() or source.read_text() != text:
            source.write_text(text)


def wanted(source: str) -> bool:
    """Returns whether the environment selects the module of this source."""
    patterns = [p for p in os.environ.get("FASTEVM_ONLY", "").split(",") if p]
    if patterns:
        return any(fnmatch(source, p) for p in patterns)
    return TESTING or not fnmatch(source, TEST_SUPPORT)


def extensions() -> list[Extension]:
    written = (p.with_suffix("") for p in templates() if p.match("*.pyx.in"))
    every = sorted({*written, *(ROOT / "fastevm").rglob("*.pyx")})
    sources = (p.relative_to(ROOT) for p in every)
    found = [
        extension(".".join(source.with_suffix("").parts), [source.as_posix()])
        for source in sources
        if wanted(source.as_posix())
    ]
    return [extension(SHARED_UTILITIES, []), *found] if found else []


# A None in place of one of our objects raises an error instead of crashing, except in this module.
# With the check, functions without the GIL need `self.x = self.x + 1`, as Cython refuses
# `self.x += 1`.
UNCHECKED = "fastevm/core/simulation/chain.pyx"


def cythonized(sources: list[Extension], *, nonecheck: bool) -> list[Extension]:
    from Cython.Build import cythonize
    from Cython.Compiler import Options

    Options.warning_errors = True  # Cython's -Werror
    Options.fast_fail = True
    return cythonize(
        sources,
        build_dir=GENERATED.as_posix(),
        compiler_directives=DIRECTIVES | {"nonecheck": nonecheck},
        shared_utility_qualified_name=SHARED_UTILITIES,
        annotate=os.environ.get("FASTEVM_ANNOTATE", "") not in ("", "0"),
        nthreads=JOBS,
        show_all_warnings=False,
    )


def from_generated(found: Extension) -> Extension:
    """Returns the extension, compiled from the C file in a source distribution."""
    name = Path(*found.name.split(".")).with_suffix(".c")
    found.sources = [(GENERATED / name).as_posix()]
    return found


def record_flags() -> None:
    """Marks objects as outdated if the flags changed, and deletes C files if the directives
    changed.
    """
    flags = [os.environ.get("CC"), compile_flags(), compile_flags(UNINITIALISED[0]), LINK_FLAGS]
    current = {"flags": flags, "directives": DIRECTIVES}
    previous = json.loads(FLAGS.read_text()) if FLAGS.exists() else {}
    if current == previous:
        return
    if not DISTRIBUTED and previous.get("directives", DIRECTIVES) != DIRECTIVES:
        for source in GENERATED.rglob("*.c"):
            source.unlink()
    FLAGS.parent.mkdir(parents=True, exist_ok=True)
    FLAGS.write_text(json.dumps(current))


def modules() -> list[Extension]:
    found = extensions()
    if found:
        record_flags()
    if DISTRIBUTED:
        return [from_generated(item) for item in found]
    if found:
        write_templates()
    unchecked = [e for e in found if e.sources and fnmatch(e.sources[0], UNCHECKED)]
    checked = [e for e in found if e not in unchecked]
    return cythonized(checked, nonecheck=True) + cythonized(unchecked, nonecheck=False)


# Commands that only describe the project, without compiling.
compiles = not {"egg_info", "dist_info", "sdist"} & set(sys.argv)

setup(
    ext_modules=modules() if compiles else [],
    cmdclass={"build_ext": ParallelBuild, "sdist": SourceDistribution},
)
