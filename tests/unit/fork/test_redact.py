"""Tests that API keys appear in no text."""

import pytest

from fastevm.fork.redact import MAX_TEXT, Redactor, redacted


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://mainnet.example.org/v3/0123456789abcdef", "https://mainnet.example.org/***"),
        ("https://rpc.example.org/?apikey=abc", "https://rpc.example.org/***"),
        ("https://user:secret@rpc.example.org:8443", "https://rpc.example.org:8443/***"),
        ("https://rpc.example.org/#abc", "https://rpc.example.org/***"),
        ("http://127.0.0.1:8545", "http://127.0.0.1:8545"),
        ("http://127.0.0.1:8545/", "http://127.0.0.1:8545"),
        ("http://[::1", "***"),
        ("http://host:port/key", "http://***/***"),
    ],
)
def test_an_address_is_shown_up_to_its_port(url: str, shown: str) -> None:
    assert redacted(url) == shown


@pytest.mark.parametrize("secret", ["abcDEF123", "p%40ss", "p@ss", "tok-en", "hdr", "Qk=="])
def test_a_text_loses_every_part_that_may_be_a_key(secret: str) -> None:
    masker = Redactor(
        ["https://me:p%40ss@rpc.example.org/v2/abcDEF123?key=tok-en"],
        {"X-Key": "hdr", "Authorization": "Basic Qk=="},
    )
    assert secret not in masker.text(f"cannot open {secret}: no {secret} there")


def test_words_that_many_addresses_have_stay_readable() -> None:
    masker = Redactor(["https://rpc.example.org/v3/mainnet/0123456789abcdef"])
    assert masker.text("mainnet of v3: 0123456789abcdef") == "mainnet of v3: ***"


def test_a_text_is_one_line_and_short() -> None:
    text = Redactor([]).text("<html>\n" + "x" * 10_000)
    assert "\n" not in text
    assert len(text) <= MAX_TEXT + 3
