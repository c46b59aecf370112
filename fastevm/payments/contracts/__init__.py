"""Contracts of payments, written for this project: sources, compiled artifacts, and their loader.

``artifact("Token")`` is an EIP-3009 token with a pause and a block list; ``MemoToken``,
``Checkout``, ``MemoCheckout``, ``Payout`` and ``Wallet`` (ERC-1271) stand beside it, and an escrow
(``AuthCaptureEscrow``) with its collectors. They are for tests and demonstrations, with the
interfaces and reasons of deployed contracts. `build` compiles them anew.
``SignatureValidator`` is sent as the data of a call and needs no address.

    token = artifact("Token")
    address = evm.deploy(token.initcode("Dollar", "USD", 6, admin), sender=admin).created_address
    evm.call(address, token.encode("balanceOf", admin))
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from fastevm.payments.contracts.abi import Abi, AbiError, Decoded, Entry

__all__ = ["CONTRACTS", "Abi", "AbiError", "Artifact", "Decoded", "Entry", "artifact"]

# What can be deployed; interfaces, libraries and parts of a contract have no artifact.
CONTRACTS = (
    "Token", "MemoToken", "Checkout", "MemoCheckout", "Payout", "Wallet", "WalletFactory",
    "SignatureValidator", "Multicall", "AuthCaptureEscrow", "TokenStore",
    "ERC3009PaymentCollector", "OperatorRefundCollector",
)  # fmt: skip


class Artifact(Abi):
    """A compiled contract: its interface, ``bytecode`` that creates it, ``deployed_bytecode``.

    Immutable values (all but Token have some) are zeros in ``deployed_bytecode``: deploy instead.
    """

    def __init__(self, contents: dict[str, Any]) -> None:
        super().__init__(contents["abi"])
        self.name: str = contents["contractName"]
        self.abi: list[dict[str, Any]] = contents["abi"]
        self.bytecode = bytes.fromhex(contents["bytecode"][2:])
        self.deployed_bytecode = bytes.fromhex(contents["deployedBytecode"][2:])

    def initcode(self, *arguments: Any) -> bytes:
        """The data of a transaction that creates the contract. Raises AbiError."""
        if not arguments and not any(one.kind == "constructor" for one in self.entries):
            return self.bytecode
        return self.bytecode + self.entry("constructor", "").words(arguments)


@cache
def artifact(name: str) -> Artifact:
    """The compiled contract of that name. Raises AbiError for one that is not in `CONTRACTS`."""
    if name not in CONTRACTS:
        raise AbiError(f"no contract {name!r}; there are {', '.join(CONTRACTS)}")
    path = files(__name__).joinpath("artifacts", f"{name}.json")
    return Artifact(json.loads(path.read_text(encoding="utf-8")))
