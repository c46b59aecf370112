"""Tests the configurations that ``fastevm pay facilitator`` rejects."""

from typing import Any

import pytest

from fastevm.__main__ import main
from fastevm.payments.vault import KEY_VARIABLE, new_key
from fastevm.payments.x402 import program


def facilitator(*words: str) -> int:
    return main(["pay", "facilitator", "--node", "http://127.0.0.1:9", *words])


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(program.SIGNER_VARIABLE, "0x" + "11" * 32)
    monkeypatch.setenv(KEY_VARIABLE, new_key())
    monkeypatch.delenv(program.TOKEN_VARIABLE, raising=False)


@pytest.mark.parametrize("missing", [program.SIGNER_VARIABLE, KEY_VARIABLE])
def test_it_needs_its_keys(
    keys: None, monkeypatch: pytest.MonkeyPatch, capsys: Any, missing: str
) -> None:
    monkeypatch.delenv(missing)
    assert facilitator() == 2
    assert missing in capsys.readouterr().err


def test_it_does_not_pay_for_anybody_on_a_public_address(keys: None, capsys: Any) -> None:
    assert facilitator("--host", "0.0.0.0") == 2
    assert "--pay-to" in capsys.readouterr().err


@pytest.mark.parametrize("token", ["", "  ", "two words", "s\u00e9cret", "\udcff"])
@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])
def test_a_token_that_protects_nothing_is_refused(
    keys: None, monkeypatch: pytest.MonkeyPatch, capsys: Any, host: str, token: str
) -> None:
    monkeypatch.setenv(program.TOKEN_VARIABLE, token)
    assert facilitator("--host", host) == 2
    error = capsys.readouterr().err
    assert program.TOKEN_VARIABLE in error
    assert not token.strip() or token not in error


def test_a_store_without_a_scheme_is_refused(keys: None, capsys: Any) -> None:
    assert facilitator("--store", "till.db") == 2
    error = capsys.readouterr().err
    assert "the store URL has no scheme: expected sqlite:///path" in error
    assert "pass --store\n" in error, "it reads no variable"


def test_a_node_that_does_not_answer_is_said(keys: None, tmp_path: Any, capsys: Any) -> None:
    assert facilitator("--store", f"sqlite:///{tmp_path / 'x.db'}") == 1
    assert "127.0.0.1:9" in capsys.readouterr().err
