"""Makes raw signed transactions, and addresses of keys, without fastevm's code."""

from typing import Any

from coincurve import PrivateKey

from .specification.encoding import keccak256, rlp_encode

AUTHORIZATION_MAGIC = b"\x05"
LEGACY_V = 27
CHAIN_V = 35
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


class Key:
    """A private key and its address."""

    def __init__(self, number: int) -> None:
        self.private = PrivateKey(number.to_bytes(32, "big"))
        self.address = keccak256(self.private.public_key.format(compressed=False)[1:])[12:]

    def sign(self, digest: bytes) -> tuple[int, int, int]:
        """Returns the signature of a hash: y parity, r, s."""
        signature = self.private.sign_recoverable(digest, hasher=None)
        r, s = signature[:32], signature[32:64]
        return signature[64], int.from_bytes(r, "big"), int.from_bytes(s, "big")


def legacy(key: Key, fields: list[Any], chain_id: int | None) -> bytes:
    """Returns a legacy transaction with nonce, price, gas, to, value and data (EIP-155)."""
    suffix = [] if chain_id is None else [chain_id, 0, 0]
    parity, r, s = key.sign(keccak256(rlp_encode(fields + suffix)))
    v = LEGACY_V + parity if chain_id is None else CHAIN_V + 2 * chain_id + parity
    return rlp_encode([*fields, v, r, s])


def typed(kind: int, key: Key, fields: list[Any], has_high_s: bool = False) -> bytes:
    """Returns a typed transaction. ``fields``: all fields before the signature."""
    parity, r, s = key.sign(keccak256(bytes([kind]) + rlp_encode(fields)))
    if has_high_s:
        parity, s = 1 - parity, ORDER - s
    return bytes([kind]) + rlp_encode([*fields, parity, r, s])


def authorization(key: Key, chain_id: int, address: bytes, nonce: int) -> list[Any]:
    """Returns an entry of an authorization list (EIP-7702)."""
    fields = [chain_id, address, nonce]
    parity, r, s = key.sign(keccak256(AUTHORIZATION_MAGIC + rlp_encode(fields)))
    return [*fields, parity, r, s]


def created_by(sender: bytes, nonce: int) -> bytes:
    """Returns the address of a contract that a creation transaction or CREATE deploys."""
    return keccak256(rlp_encode([sender, nonce]))[12:]
