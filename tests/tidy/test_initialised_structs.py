"""Tests that every C struct on the stack is initialised where it is declared.

If a struct is filled member by member and then copied as a whole, it may reveal earlier contents of
the stack. Structs with a single array as member, and structs of such structs, are exempt, because
functions write them as a whole.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .sources import ROOT, files, shown

STRUCT = re.compile(r"^(\s*)(?:cdef |ctypedef )?(?:packed )?(?:struct|union) (\w+):")
LOCAL = re.compile(r"^(\s+)cdef (\w+) (\w+(?:\[\w+\])?(?:, \w+(?:\[\w+\])?)*)\s*(?:#.*)?$")
MEMBERS_FOLLOW = re.compile(
    r"\s*(?:cdef|ctypedef)?\s*(?:public )?(?:packed )?(?:class|struct|union|extern|enum)\b"
)
# Structs of other libraries, which initialise them with a function of their own.
FOREIGN = {"Integer", "pthread_attr_t", "sigset_t"}


def indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def block_after(lines: list[str], at: int, least: int) -> Iterator[str]:
    """Yields the lines after ``at``, as long as they are indented by at least ``least`` columns."""
    for line in lines[at + 1 :]:
        if line.strip() and indent(line) < least:
            return
        yield line


def members_by_struct() -> dict[str, list[list[str]]]:
    found: dict[str, list[list[str]]] = {}
    for path in files(".pyx", ".pxd", under=("fastevm",)):
        lines = path.read_text().splitlines()
        for at, line in enumerate(lines):
            if head := STRUCT.match(line):
                body = block_after(lines, at, indent(line) + 1)
                members = [text for each in body if (text := each.split("#")[0].strip())]
                found.setdefault(head[2], []).append(members)
    return found


STRUCTS = members_by_struct()


def written_whole(name: str, above: tuple[str, ...] = ()) -> bool:
    """Returns whether a struct consists of a single array, or only of structs that do."""
    if name in above or name not in STRUCTS:
        return False
    for members in STRUCTS[name]:
        for member in members:
            kind = member.split()[0]
            if kind in STRUCTS:
                if not written_whole(kind, (*above, name)):
                    return False
            elif len(members) > 1 or not member.endswith("]"):
                return False
    return all(STRUCTS[name])


CHECKED = {name for name in STRUCTS if not written_whole(name)} - FOREIGN


def owner_of(lines: list[str], at: int) -> str:
    """Returns the line that opens the block which contains the declaration at ``at``."""
    least = indent(lines[at])
    return next(
        (line for line in reversed(lines[:at]) if line.strip() and indent(line) < least), ""
    )


def uninitialised(lines: list[str]) -> Iterator[str]:
    """Yields the declarations of structs that no initialiser sets before their first use."""
    for at, line in enumerate(lines):
        found = LOCAL.match(line)
        if not found or found[2] not in CHECKED or MEMBERS_FOLLOW.match(owner_of(lines, at)):
            continue
        for name in re.findall(r"(\w+)(?:\[\w+\])?", found[3]):
            used = re.compile(rf"\b{name}\b")
            body = (each.strip() for each in block_after(lines, at, len(found[1])))
            first = next(
                (
                    text
                    for text in body
                    if used.search(text) and not re.match(r"cdef \w+ [^=]*$", text)
                ),
                "",
            )
            if not re.match(rf"memset\(&?{name}, 0, sizeof\(|{name} = ", first):
                yield f"{at + 1}: {found[2]} {name}"


@pytest.mark.parametrize("path", files(".pyx", ".pxd", under=("fastevm",)), ids=shown)
def test_structs_are_initialised_where_they_are_declared(path: Path) -> None:
    assert not [*uninitialised(path.read_text().splitlines())]


def test_a_struct_that_is_filled_member_by_member_is_found() -> None:
    lines = ["def f():", "    cdef Refusal r", "    r.code = NOT_REFUSED", "    show(&r)"]
    assert [*uninitialised(lines)] == ["2: Refusal r"]
    lines.insert(2, "    memset(&r, 0, sizeof(r))")
    assert not [*uninitialised(lines)]


def test_the_structs_of_the_engine_are_checked() -> None:
    assert {"Refusal", "TxResult", "TxOptions", "Message"} <= CHECKED
    assert "Word" not in CHECKED
    assert (ROOT / "fastevm").is_dir()
