"""Tests mnemonics: the word list, the checksum and random mnemonics."""

import hashlib

import pytest
from eth_account import Account

from fastevm.node.dev_accounts import TEST_MNEMONIC, dev_accounts
from fastevm.node.mnemonic import LENGTHS, WORDS_FILE, check_mnemonic, random_mnemonic, word_list

GANACHE = "myth like bonus scare over problem client lizard pioneer submit female collect"
PUBLISHED = "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda"


def test_the_word_list_is_the_published_one() -> None:
    assert hashlib.sha256(WORDS_FILE.read_bytes()).hexdigest() == PUBLISHED
    assert len(set(word_list())) == 2048


@pytest.mark.parametrize("words", [TEST_MNEMONIC, GANACHE, f"  {GANACHE}\n"])
def test_well_known_mnemonics_are_accepted(words: str) -> None:
    check_mnemonic(words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "has 0 words"),
        (TEST_MNEMONIC + " test", "has 13 words"),
        (TEST_MNEMONIC.replace("junk", "jnuk"), "word 12 .*'jnuk'.*did you mean 'junk'"),
        (" ".join(["test"] * 12), "checksum"),
        (" ".join(sorted(GANACHE.split())), "checksum"),
    ],
)
def test_wrong_mnemonics_are_refused(words: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_mnemonic(words)


@pytest.mark.parametrize("count", LENGTHS)
def test_random_mnemonics_are_valid_for_other_wallets(count: int) -> None:
    words = random_mnemonic(count)
    check_mnemonic(words)
    Account.enable_unaudited_hdwallet_features()
    account = Account.from_mnemonic(words)  # also checks the checksum
    assert bytes.fromhex(account.address[2:]) == dev_accounts(1, words)[0].address
    assert random_mnemonic(count) != words


def test_other_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="no mnemonic has 13 words"):
        random_mnemonic(13)
