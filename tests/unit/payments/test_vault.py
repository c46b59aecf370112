"""Tests the vault: encrypted values are bound to their context, and keys can be rotated."""

import base64

import pytest

from fastevm.payments import KEY_VARIABLE, Vault, VaultError, new_key

OLD, NEW = b"\x01" * 32, b"\x02" * 32
SECRET = b"a payment credential"


def test_what_is_sealed_opens_in_its_place() -> None:
    vault = Vault([OLD])
    sealed = vault.seal(SECRET, "order/1")
    assert SECRET not in sealed
    assert vault.open(sealed, "order/1") == SECRET
    assert vault.seal(SECRET, "order/1") != sealed


def test_it_does_not_open_elsewhere_or_changed_or_without_its_key() -> None:
    vault = Vault([OLD])
    sealed = vault.seal(SECRET, "order/1")
    with pytest.raises(VaultError, match="order/2"):
        vault.open(sealed, "order/2")
    for at in range(len(sealed)):
        broken = sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]
        with pytest.raises(VaultError):
            vault.open(broken, "order/1")
    with pytest.raises(VaultError, match="not in the ring"):
        Vault([NEW]).open(sealed, "order/1")
    with pytest.raises(VaultError, match="not a sealed value"):
        vault.open(sealed[:20], "order/1")


def test_the_first_key_of_a_ring_seals_and_all_open() -> None:
    old = Vault([OLD]).seal(SECRET, "order/1")
    ring = Vault([NEW, OLD])
    assert ring.open(old, "order/1") == SECRET
    assert ring.outdated(old)
    new = ring.seal(SECRET, "order/1")
    assert not ring.outdated(new)
    assert Vault([NEW]).open(new, "order/1") == SECRET


def test_the_ring_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = f"{new_key()}, {base64.b64encode(OLD).decode()}"
    monkeypatch.setenv(KEY_VARIABLE, keys)
    assert Vault.from_environment().open(Vault([OLD]).seal(SECRET, "x"), "x") == SECRET
    assert repr(Vault.from_environment()) == "<Vault of 2 keys>"


def test_a_key_may_be_hex(monkeypatch: pytest.MonkeyPatch) -> None:
    sealed = Vault([OLD]).seal(SECRET, "x")
    for text in (OLD.hex(), "0x" + OLD.hex().upper(), f" {OLD.hex()} "):
        monkeypatch.setenv("FASTEVM_PAYMENTS_KEY", f"{new_key()},{text}")
        assert Vault.from_environment().open(sealed, "x") == SECRET


def test_blank_parts_of_a_pasted_list_of_keys_are_ignored(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FASTEVM_PAYMENTS_KEY", f"{new_key()},\n {new_key()},")
    assert repr(Vault.from_environment()) == "<Vault of 2 keys>"
    for blank in (",", " , ,\n"):
        monkeypatch.setenv("FASTEVM_PAYMENTS_KEY", blank)
        with pytest.raises(VaultError, match="is empty"):
            Vault.from_environment()


def test_a_wrong_key_is_explained_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("my secret", OLD.hex()[:-2], "0x" + OLD.hex() + "00", OLD.hex() + "0="):
        monkeypatch.setenv("FASTEVM_PAYMENTS_KEY", f"{new_key()},{wrong}")
        with pytest.raises(VaultError) as raised:
            Vault.from_environment()
        text = str(raised.value)
        assert f"key 2 has {len(wrong)} characters" in text and "rotate-keys --new" in text
        assert "64 hex digits" in text and wrong not in text
    monkeypatch.delenv("FASTEVM_PAYMENTS_KEY")
    with pytest.raises(VaultError, match="rotate-keys --new"):
        Vault.from_environment()


@pytest.mark.parametrize("value", ["", " ", "not base64!", "c2hvcnQ=", ",".join([new_key()] * 17)])
def test_a_bad_environment_is_refused_without_repeating_it(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(KEY_VARIABLE, value)
    with pytest.raises(VaultError) as raised:
        Vault.from_environment()
    assert not value.strip() or value not in str(raised.value)
