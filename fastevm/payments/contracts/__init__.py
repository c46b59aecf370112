"""The contracts of this package: sources, compiled artifacts, and their loader.

``artifact("Token")`` is an EIP-3009 token with pause and block list. The other contracts are
``MemoToken``, ``Checkout``, ``MemoCheckout``, ``Payout``, ``Wallet`` (ERC-1271), and an escrow
(``AuthCaptureEscrow``) with its collectors. They have the interfaces and revert reasons of the
contracts that public chains use, and are for tests and demonstrations. `build` compiles them.

``SignatureValidator`` is called through a state override and needs no deployment.

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

# The deployable contracts. Interfaces, libraries and parts of a contract have no artifact.
CONTRACTS = (
    "Token", "MemoToken", "Checkout", "MemoCheckout", "Payout", "Wallet", "WalletFactory",
    "SignatureValidator", "Multicall", "AuthCaptureEscrow", "TokenStore",
    "ERC3009PaymentCollector", "OperatorRefundCollector", "PermitCollector",
)  # fmt: skip


class Artifact(Abi):
    """A compiled contract: ABI, creation ``bytecode`` and ``deployed_bytecode``.

    Immutables (all contracts but Token have some) are zero in ``deployed_bytecode``; deploy
    instead.
    """

    def __init__(self, contents: dict[str, Any]) -> None:
        super().__init__(contents["abi"])
        self.name: str = contents["contractName"]
        self.abi: list[dict[str, Any]] = contents["abi"]
        self.bytecode = bytes.fromhex(contents["bytecode"][2:])
        self.deployed_bytecode = bytes.fromhex(contents["deployedBytecode"][2:])

    def initcode(self, *arguments: Any) -> bytes:
        """Returns creation bytecode with constructor arguments. Raises AbiError."""
        if not arguments and not any(entry.kind == "constructor" for entry in self.entries):
            return self.bytecode
        return self.bytecode + self.entry("constructor", "").words(arguments)


@cache
def artifact(name: str) -> Artifact:
    """Loads a compiled contract by name. Raises AbiError if it is not in `CONTRACTS`."""
    if name not in CONTRACTS:
        raise AbiError(f"no contract {name!r}; there are {', '.join(CONTRACTS)}")
    path = files(__name__).joinpath("artifacts", f"{name}.json")
    return Artifact(json.loads(path.read_text(encoding="utf-8")))
