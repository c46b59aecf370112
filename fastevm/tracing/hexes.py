"""The JSON forms of numbers and bytes in traces."""


def hex_bytes(data: bytes) -> str:
    """0x-hex of bytes, two digits each."""
    return "0x" + data.hex()


def quantity(value: int) -> str:
    """0x-hex of an integer without leading zeros."""
    return f"0x{value:x}"


def hex_word(value: int) -> str:
    """0x-hex of 32 bytes."""
    return f"0x{value:064x}"
