"""``fastevm pay rotate-keys``: re-encrypts a shop of the store with the newest key of the ring.

Before you remove the old key, run the command for each ``--shop`` of the store, also for a
facilitator's ``x402/CHAIN``.
"""

import argparse

from fastevm.payments.commands.shared import add_store, shop_of
from fastevm.payments.store_key import rotate
from fastevm.payments.vault import KEY_VARIABLE, Vault, new_key


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add_store(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--new", action="store_true", help=f"only print a new key, to put first in {KEY_VARIABLE}"
    )
    what.add_argument(
        "--lost",
        action="store_true",
        help="an older key is lost: leave the values that cannot be decrypted, and use the newest"
        " key from now on",
    )


def run(arguments: argparse.Namespace) -> int:
    """Re-encrypts, or prints a new key."""
    if arguments.new:
        print(new_key())
        return 0
    vault = Vault.from_environment()
    store = shop_of(arguments, x402=True)
    try:
        count, failed = rotate(store, vault, lost=arguments.lost)
        what = "1 value was" if count == 1 else f"{count} values were"
        print(f"{what} re-encrypted with the newest key")
        if failed:
            print(f"{failed} could not be decrypted and stay as they are")
    finally:
        store.close()
    return 0
