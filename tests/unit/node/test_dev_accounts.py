"""Tests that development accounts are those that wallets derive from the same mnemonic."""

import pytest
from eth_account import Account

from fastevm.node.dev_accounts import (
    MAX_ACCOUNTS,
    TEST_MNEMONIC,
    TEST_SEED,
    dev_accounts,
    seed_of,
)

Account.enable_unaudited_hdwallet_features()


@pytest.mark.parametrize(
    "mnemonic",
    [TEST_MNEMONIC, "legal winner thank year wave sausage worth useful legal winner thank yellow"],
)
def test_accounts_agree_with_eth_account(mnemonic: str) -> None:
    for index, account in enumerate(dev_accounts(4, mnemonic)):
        expected = Account.from_mnemonic(mnemonic, account_path=f"m/44'/60'/0'/0/{index}")
        assert account.private_key == bytes(expected.key)
        assert "0x" + account.address.hex() == expected.address.lower()


def test_keys_stay_out_of_the_repr() -> None:
    account = dev_accounts(1)[0]
    assert account.private_key.hex() not in repr(account)


@pytest.mark.parametrize("count", [-1, MAX_ACCOUNTS + 1])
def test_the_number_of_accounts_has_a_limit(count: int) -> None:
    with pytest.raises(ValueError, match="number of accounts"):
        dev_accounts(count)


def test_an_empty_mnemonic_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        dev_accounts(1, "  ")


def test_the_seed_of_the_default_mnemonic_is_what_the_rounds_give() -> None:
    assert seed_of(TEST_MNEMONIC) == TEST_SEED
