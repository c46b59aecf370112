"""Checks the commands of the page on containers, without Docker."""

import argparse
import re
import shlex
from collections.abc import Iterator

import pytest

from fastevm.cli.command_line import parser
from fastevm.rpc.command import access_of

from .pages import DOCS, blocks_of, commands_of
from .shared_data import ROOT

PAGE = (DOCS / "how-to/containers.md").read_text()
DOCKERFILE = (ROOT / "docs/public/Dockerfile").read_text()
IMAGE = "fastevm"
PROGRAM = re.search(r'ENTRYPOINT \["([^"]+)"', DOCKERFILE)


def list_of(text: str) -> list[str]:
    """Returns the words of a list in brackets, whether they are quoted or not."""
    return [word.strip().strip('"') for word in text.split(",")]


def entrypoint(text: str, pattern: str) -> list[str]:
    found = re.search(pattern, text)
    assert found is not None
    return list_of(found[1])


def commands() -> Iterator[list[str]]:
    """Yields the commands that run in containers: those of the compose file and of `docker run`."""
    (compose,) = (block.code for block in blocks_of(PAGE) if block.title == "compose.yaml")
    yield entrypoint(compose, r"entrypoint: \[(.*)\]")
    for command in commands_of(PAGE):
        words = shlex.split(command)
        if words[:2] != ["docker", "run"]:
            continue
        given = words[words.index(IMAGE) + 1 :]
        if "--entrypoint" in words:
            yield [words[words.index("--entrypoint") + 1], *given]
        else:
            yield [*entrypoint(DOCKERFILE, r"ENTRYPOINT \[(.*)\]"), *given]


@pytest.fixture(scope="module")
def parsed() -> list[argparse.Namespace]:
    """Provides the arguments of each command."""
    found = list(commands())
    assert PROGRAM is not None and {words[0] for words in found} == {PROGRAM[1]}
    return [parser().parse_args(words[1:]) for words in found]


def test_commands_listen_outside_the_container(parsed: list[argparse.Namespace]) -> None:
    assert [item.command for item in parsed] == ["dev", "dev", "node"]
    assert {item.host for item in parsed} == {"0.0.0.0"}


def test_development_nodes_serve_what_tests_need(parsed: list[argparse.Namespace]) -> None:
    beside, alone, public = (access_of(item) for item in parsed)
    for access in (beside, alone):
        assert {"anvil", "debug", "eth", "personal"} <= access.served("0.0.0.0")
    assert "anvil" not in public.served("0.0.0.0")
    assert beside.allows_host("chain:8545") and not alone.allows_host("chain:8545")
    assert alone.allows_host("localhost:8545") and public.allows_host("node.example")


def test_the_image_is_built_from_the_file_of_the_repository() -> None:
    (build,) = (shlex.split(line) for line in commands_of(PAGE) if line.startswith("docker build"))
    assert (ROOT / build[build.index("-f") + 1]).is_file()
    assert build[build.index("-t") + 1] == IMAGE
    assert "/healthz" in DOCKERFILE
