"""Writes this package's contracts to published addresses, on a development chain.

Client programs contain fixed addresses of tokens and escrows. With the contracts at these
addresses, the programs work unchanged with a development node, which can set code and storage.
"""

from typing import Any, Final, Protocol

from eth_utils.crypto import keccak

from fastevm.payments.contracts import artifact

BALANCES: Final = 9  # slot of the balances mapping
SHORTEST_TEXT: Final = 32  # bytes; shorter texts fit into one slot


class Caller(Protocol):
    """A client that can call a node."""

    async def call(self, method: str, *params: Any) -> Any:
        """Returns the result."""
        ...


class Places(Protocol):
    """The addresses of an escrow deployment."""

    @property
    def escrow(self) -> str:
        """The escrow's address."""
        ...

    @property
    def erc3009_collector(self) -> str:
        """The collector of EIP-3009 authorizations."""
        ...

    @property
    def refund_collector(self) -> str:
        """The collector of refunds."""
        ...


async def place_token(
    node: Caller, address: str, *, name: str, symbol: str, decimals: int, admin: str
) -> None:
    """Writes the token to an address. Its EIP-712 domain is (name, "2", chain id, address).

    The node must have ``anvil_setCode`` and ``anvil_setStorageAt``.
    """
    await place_code(node, address, artifact("Token").deployed_bytecode)
    owner, flag = int(admin, 16), 1 << 160
    slots = {0: owner, 1: owner, 2: owner, 6: decimals, 8: owner | flag, 18: 3}
    for slot, text in ((4, name), (5, symbol), (7, "USD")):
        slots[slot] = _short_text(text)
    for slot, value in slots.items():
        await write_slot(node, address, slot, value)


async def place_code(node: Caller, address: str, code: bytes) -> None:
    """Sets the code of an address."""
    await node.call("anvil_setCode", address, "0x" + code.hex())


async def give_tokens(node: Caller, token: str, holder: str, units: int) -> None:
    """Sets a holder's balance of a token written by :func:`place_token`."""
    key = bytes.fromhex(holder[2:]).rjust(32, b"\0") + BALANCES.to_bytes(32, "big")
    await write_slot(node, token, int.from_bytes(keccak(key), "big"), units)


async def write_slot(node: Caller, address: str, slot: int, value: int) -> None:
    """Sets a storage slot."""
    await node.call("anvil_setStorageAt", address, f"0x{slot:064x}", f"0x{value:064x}")


def _short_text(text: str) -> int:
    """Returns the storage word of a string shorter than 32 bytes."""
    raw = text.encode()
    if len(raw) >= SHORTEST_TEXT:
        raise ValueError(f"{text!r}: expected fewer than {SHORTEST_TEXT} bytes")
    return int.from_bytes(raw.ljust(32, b"\0"), "big") | 2 * len(raw)


async def place_contract(node: Caller, address: str, initcode: bytes) -> None:
    """Runs creation code at an address and writes the returned code to that address.

    Immutables that contain the contract's address are therefore right.
    """
    await place_code(node, address, initcode)
    code = await node.call("eth_call", {"to": address}, "pending")
    await place_code(node, address, bytes.fromhex(code[2:]))


async def place_escrow(node: Caller, deployment: Places, store: str, multicall: str) -> None:
    """Writes the escrow and its collectors to the addresses of a deployment.

    ``store`` is the address for the implementation of the escrow's token stores.
    """
    escrow = deployment.escrow
    await place_contract(node, multicall, artifact("Multicall").initcode())
    await place_contract(node, store, artifact("TokenStore").initcode(escrow))
    await place_contract(node, escrow, artifact("AuthCaptureEscrow").initcode(store))
    collector = artifact("ERC3009PaymentCollector").initcode(escrow, multicall)
    await place_contract(node, deployment.erc3009_collector, collector)
    refunds = artifact("OperatorRefundCollector").initcode(escrow)
    await place_contract(node, deployment.refund_collector, refunds)
