"""Checks that a key ring has the key of a store.

Each shop of a store keeps a check value: a constant, encrypted with the shop's first key or with
the key of the last rotation. The ring must decrypt the check value before anything is encrypted or
sent, even if the shop has no other encrypted value. Otherwise a process with a wrong key would add
values that other processes cannot decrypt.
"""

from typing import Final

from fastevm.payments.errors import InvalidTerms, VaultError
from fastevm.payments.states import State
from fastevm.payments.store import Store, every_order
from fastevm.payments.vault import KEY_VARIABLE, Vault

CHECK: Final = b"fastevm.payments store key"
SAMPLE: Final = 100  # oldest values of each table that are tried in a store without a check value
OPEN: Final = tuple(state for state in State if state.open)
WRONG_KEY: Final = (
    f"{KEY_VARIABLE} is not the key of this store: add the store's key after the newest key,"
    " separated by a comma. If it is lost, void the open orders and run"
    " 'fastevm pay rotate-keys --lost'"
)


def _context(store: Store) -> str:
    return f"shop {store.shop}/key"


def opens(vault: Vault, sealed: bytes, context: str) -> bool:
    """Whether a key of the ring decrypts the value."""
    try:
        vault.open(sealed, context)
    except VaultError:
        return False
    return True


def holds_key(store: Store, vault: Vault) -> bool:
    """Whether the ring has the key of the store's selected shop. True for a shop without values.

    A shop of an earlier version has no check value. There the ring must decrypt at least half of
    the oldest values.
    """
    check = store.key_check()
    if check is not None:
        return opens(vault, check, _context(store))
    found = [opens(vault, sealed, context) for sealed, context in store.sealed(SAMPLE)]
    return 2 * sum(found) >= len(found)


def check_key(store: Store, vault: Vault) -> None:
    """Raises VaultError if the ring lacks the key of this shop.

    If the shop has no check value, stores one that the newest key encrypts.
    """
    if not holds_key(store, vault):
        raise VaultError(WRONG_KEY)
    if store.key_check() is None:
        kept = store.add_key_check(vault.seal(CHECK, _context(store)))
        # another process has stored a check value first
        if not opens(vault, kept, _context(store)):
            raise VaultError(WRONG_KEY)


def rotate(store: Store, vault: Vault, *, lost: bool = False) -> tuple[int, int]:
    """Re-encrypts a shop's values with the newest key.

    Returns how many values were re-encrypted, and how many could not be decrypted. Raises
    VaultError if a value cannot be decrypted, and changes nothing. With ``lost``, such values stay
    as they are, and the newest key becomes the shop's key. In this case, raises InvalidTerms if the
    signature of an open order cannot be decrypted.
    """
    failed = 0

    def again(sealed: bytes, context: str) -> bytes | None:
        nonlocal failed
        if not vault.outdated(sealed):
            return None
        try:
            return vault.seal(vault.open(sealed, context), context)
        except VaultError:
            if not lost:
                raise
            failed += 1
            return None

    if lost:
        stuck = [
            order.id
            for order in every_order(store, OPEN)
            if order.sealed is not None and not opens(vault, order.sealed, order.seal_context)
        ]
        if stuck:
            raise InvalidTerms(
                f"{KEY_VARIABLE} does not decrypt the signatures of {len(stuck)} open orders:"
                f" void them first: {', '.join(stuck[:5])}{', ...' if len(stuck) > 5 else ''}"
            )
    else:
        check_key(store, vault)
    return store.reseal(again, vault.seal(CHECK, _context(store))), failed
