"""Tests misspelt words on the command line."""

import pytest

from fastevm import __version__
from fastevm.__main__ import main


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["nodee"], "node"),
        (["node", "--prot", "1"], "--port"),
        (["node", "--dialect", "gteh"], "geth"),
        (["conformance", "stat", "x"], "state"),
        (["t8n", "--state.frok", "Osaka"], "--state.fork"),
    ],
)
def test_a_word_that_is_almost_right_is_answered_with_the_right_one(
    words: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(words)
    assert exit_.value.code == 2
    assert f"did you mean {meant!r}?" in capsys.readouterr().err


def test_a_word_like_no_other_gets_no_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["xyzzy"])
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["node", "dev"])
def test_an_error_stands_below_one_line_where_there_are_many_options(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--port", "70000"])
    usage, error = capsys.readouterr().err.splitlines()
    assert f"fastevm {command} --help" in usage
    assert error.endswith("invalid port '70000': expected 0 to 65535")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["node", "--genesis", "none.json"], "fastevm node: none.json: no such file or directory"),
        (["dev", "--init", "none.json"], "fastevm dev: none.json: no such file or directory"),
        (["stateless", "verify", "no"], "fastevm stateless: no: no such file or directory"),
        (
            ["dev", "--fork-url", "http://127.0.0.1:1", "--retries", "0"],
            "fastevm dev: http://127.0.0.1:1: connection refused",
        ),
    ],
)
def test_a_missing_file_is_named_without_error_numbers(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 1
    assert capsys.readouterr().err == f"{message}\n"


def test_without_a_command_all_commands_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    shown = capsys.readouterr().err
    assert "dev" in shown and "statetest" in shown and "required" not in shown


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        (["help"], "usage: fastevm "),
        (["help", "dev"], "usage: fastevm dev "),
        (["help", "fork", "cache"], "usage: fastevm fork cache "),
    ],
)
def test_help_names_a_command(
    words: list[str], usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(words)
    assert exit_.value.code == 0
    assert capsys.readouterr().out.startswith(usage)


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_the_version_has_a_short_option(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main([option])
    assert exit_.value.code == 0
    assert capsys.readouterr().out == f"fastevm {__version__}\n"
