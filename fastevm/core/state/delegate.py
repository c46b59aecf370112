"""The code of an account that delegates to another account (EIP-7702)."""

from typing import Final

DELEGATION_PREFIX: Final = bytes.fromhex("ef0100")
DELEGATION_SIZE: Final = 23  # bytes: the prefix, then the address of the delegate


def delegate_of(code: bytes) -> bytes | None:
    """Returns the address that an account with this code delegates to, or None."""
    if len(code) == DELEGATION_SIZE and code.startswith(DELEGATION_PREFIX):
        return code[len(DELEGATION_PREFIX) :]
    return None
