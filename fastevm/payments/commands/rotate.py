"""``fastevm pay rotate-keys``: re-encrypts a shop of the store with the newest key of the ring.

Run it for every ``--shop`` of the store before the old key is removed.
"""

import argparse

from fastevm.payments.commands.shared import add_store, shop_of
from fastevm.payments.vault import KEY_VARIABLE, Vault, new_key


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add_store(parser)
    parser.add_argument(
        "--new", action="store_true", help=f"only print a new key, to put first in {KEY_VARIABLE}"
    )


def run(arguments: argparse.Namespace) -> int:
    """Re-encrypts, or prints a new key."""
    if arguments.new:
        print(new_key())
        return 0
    vault = Vault.from_environment()

    def again(sealed: bytes, context: str) -> bytes | None:
        return vault.seal(vault.open(sealed, context), context) if vault.outdated(sealed) else None

    store = shop_of(arguments)
    try:
        count = store.reseal(again)
        what = "1 value was" if count == 1 else f"{count} values were"
        print(f"{what} re-encrypted with the newest key")
    finally:
        store.close()
    return 0
