"""Puts contracts of ours where programs expect the real ones, on a development chain.

Published clients know the addresses of tokens and escrows. A development node lets code and storage
be written, so that the same clients, unchanged, can pay on a chain of one's own.
"""

from typing import Any, Final, Protocol

from eth_utils.crypto import keccak

from fastevm.payments.contracts import artifact

BALANCES: Final = 9  # the slot of the mapping of balances
SHORTEST_TEXT: Final = 32  # bytes that do not fit into one slot any more


class Caller(Protocol):
    """Whatever asks a node."""

    async def call(self, method: str, *params: Any) -> Any:
        """The result."""
        ...


class Places(Protocol):
    """Where a deployment of the escrow is."""

    @property
    def escrow(self) -> str:
        """The escrow."""
        ...

    @property
    def erc3009_collector(self) -> str:
        """The collector of authorizations."""
        ...

    @property
    def refund_collector(self) -> str:
        """The collector of refunds."""
        ...


async def place_token(
    node: Caller, place: str, *, name: str, symbol: str, decimals: int, admin: str
) -> None:
    """Write the token to an address: its domain is then that of name, version 2, chain, address.

    The node needs the methods ``anvil_setCode`` and ``anvil_setStorageAt``.
    """
    await place_code(node, place, artifact("Token").deployed_bytecode)
    owner, flag = int(admin, 16), 1 << 160
    slots = {0: owner, 1: owner, 2: owner, 6: decimals, 8: owner | flag, 18: 3}
    for slot, text in ((4, name), (5, symbol), (7, "USD")):
        slots[slot] = _short_text(text)
    for slot, value in slots.items():
        await write_slot(node, place, slot, value)


async def place_code(node: Caller, place: str, code: bytes) -> None:
    """Write code to an address."""
    await node.call("anvil_setCode", place, "0x" + code.hex())


async def give_tokens(node: Caller, token: str, holder: str, units: int) -> None:
    """Let somebody hold so much of a token that was placed."""
    key = bytes.fromhex(holder[2:]).rjust(32, b"\0") + BALANCES.to_bytes(32, "big")
    await write_slot(node, token, int.from_bytes(keccak(key), "big"), units)


async def write_slot(node: Caller, place: str, slot: int, value: int) -> None:
    """Write a word of storage."""
    await node.call("anvil_setStorageAt", place, f"0x{slot:064x}", f"0x{value:064x}")


def _short_text(text: str) -> int:
    """A short string as its slot holds it."""
    raw = text.encode()
    if len(raw) >= SHORTEST_TEXT:
        raise ValueError(f"{text!r}: expected fewer than {SHORTEST_TEXT} bytes")
    return int.from_bytes(raw.ljust(32, b"\0"), "big") | 2 * len(raw)


async def place_contract(node: Caller, place: str, initcode: bytes) -> None:
    """Write what creation code makes to an address, as if it had been created there.

    The creation code runs as the address's own code, so that what it remembers of itself fits.
    """
    await place_code(node, place, initcode)
    code = await node.call("eth_call", {"to": place}, "pending")
    await place_code(node, place, bytes.fromhex(code[2:]))


async def place_escrow(node: Caller, deployment: Places, store: str, multicall: str) -> None:
    """Write the escrow and its collectors to the addresses of a deployment.

    ``store`` is where the implementation of its token stores goes.
    """
    escrow = deployment.escrow
    await place_contract(node, multicall, artifact("Multicall").initcode())
    await place_contract(node, store, artifact("TokenStore").initcode(escrow))
    await place_contract(node, escrow, artifact("AuthCaptureEscrow").initcode(store))
    collector = artifact("ERC3009PaymentCollector").initcode(escrow, multicall)
    await place_contract(node, deployment.erc3009_collector, collector)
    refunds = artifact("OperatorRefundCollector").initcode(escrow)
    await place_contract(node, deployment.refund_collector, refunds)
