"""Encodes, decodes and hashes deposit transactions, and computes source hashes.

Source: deposits, "The Deposited Transaction Type", "Source hash computation", "Address Aliasing".
"""

from dataclasses import dataclass

from .encoding import DecodingError, keccak256, rlp_decode, rlp_encode, word

DEPOSIT_TYPE = 0x7E
ALIAS_OFFSET = 0x1111000000000000000000000000000000001111
ADDRESS = 20
# maximum sizes of mint, value and gas, in bytes
MINT, VALUE, GAS = 16, 32, 8


@dataclass(frozen=True)
class Deposit:
    """A deposit transaction. With an empty `to` it creates a contract."""

    source_hash: bytes
    sender: bytes
    to: bytes
    mint: int
    value: int
    gas: int
    is_system: bool
    data: bytes

    def encode(self) -> bytes:
        """Returns the type byte followed by the RLP list of eight fields."""
        fields = (
            self.source_hash, self.sender, self.to, self.mint, self.value, self.gas,
            int(self.is_system), self.data,
        )  # fmt: skip
        return bytes([DEPOSIT_TYPE]) + rlp_encode(fields)

    def hash(self) -> bytes:
        return keccak256(self.encode())


def decode_deposit(raw: bytes) -> Deposit:
    """Decodes a raw transaction of a block. Raises DecodingError if it is not a deposit."""
    if raw[:1] != bytes([DEPOSIT_TYPE]):
        raise DecodingError("not of type 0x7e")
    fields = rlp_decode(raw[1:])
    if not isinstance(fields, list) or len(fields) != 8:
        raise DecodingError("a deposit has eight fields")
    if not all(isinstance(field, bytes) for field in fields):
        raise DecodingError("a field of a deposit is no list")
    source_hash, sender, to, mint, value, gas, is_system, data = fields
    if len(source_hash) != 32 or len(sender) != ADDRESS or len(to) not in (0, ADDRESS):
        raise DecodingError("a hash or an address of another length")
    if is_system not in (b"", b"\1"):
        raise DecodingError("not a boolean")
    numbers = []
    for field, size in ((mint, MINT), (value, VALUE), (gas, GAS)):
        if len(field) > size or field[:1] == b"\0":
            raise DecodingError("a number that is too large or has leading zeros")
        numbers.append(int.from_bytes(field, "big"))
    return Deposit(source_hash, sender, to, *numbers, is_system=bool(is_system), data=data)


def user_source_hash(l1_block_hash: bytes, log_index: int) -> bytes:
    """Returns the source hash of a user's deposit on L1 (domain 0)."""
    return keccak256(word(0) + keccak256(l1_block_hash + word(log_index)))


def attributes_source_hash(l1_block_hash: bytes, sequence_number: int) -> bytes:
    """Returns the source hash of the L1 attributes deposit (domain 1)."""
    return keccak256(word(1) + keccak256(l1_block_hash + word(sequence_number)))


def upgrade_source_hash(intent: str) -> bytes:
    """Returns the source hash of an upgrade transaction in a fork's first block (domain 2)."""
    return keccak256(word(2) + keccak256(intent.encode()))


def aliased(address: bytes) -> bytes:
    """Returns the alias of an L1 contract: the address that sends its deposits on L2."""
    number = int.from_bytes(address, "big") + ALIAS_OFFSET
    return (number % 2**160).to_bytes(ADDRESS, "big")
