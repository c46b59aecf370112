"""Addresses as people read them."""

from fastevm.primitives.keccak import keccak256


def checksum(address: bytes) -> str:
    """The address in EIP-55's mixed case."""
    text = address.hex()
    digest = keccak256(text.encode()).hex()
    return "0x" + "".join(
        letter.upper() if int(nibble, 16) >= 8 else letter
        for letter, nibble in zip(text, digest, strict=False)
    )
