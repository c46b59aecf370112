"""The build backend of pyproject.toml: setuptools, with Cython only if C files must be generated.

A source distribution (PEP 517) contains the C files, so a wheel is built from it without Cython.
"""

from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

CYTHON = "Cython>=3.3,<4"
MSGSPEC = "msgspec>=0.18,<1"  # templates read the opcode table, whose rows are msgspec structs
Settings = dict[str, Any] | None


def _translator() -> list[str]:
    """Returns the requirement of Cython, unless a source distribution contains the C files."""
    return [] if Path("PKG-INFO").exists() else [CYTHON, MSGSPEC]


def get_requires_for_build_wheel(config_settings: Settings = None) -> list[str]:
    """PEP 517."""
    return build_meta.get_requires_for_build_wheel(config_settings) + _translator()


def get_requires_for_build_sdist(config_settings: Settings = None) -> list[str]:
    """PEP 517."""
    return build_meta.get_requires_for_build_sdist(config_settings) + _translator()


def get_requires_for_build_editable(config_settings: Settings = None) -> list[str]:
    """PEP 660."""
    return build_meta.get_requires_for_build_editable(config_settings) + _translator()
