"""Provides a chain with the payment contracts, and accounts that use them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eth_account import Account
from eth_account.messages import encode_typed_data

from fastevm import EVM, ExecutionResult
from fastevm.payments.contracts import Artifact, Decoded, artifact

from . import circle

CHAIN_ID = 31337
NOW = 1_700_000_100
VALID_AFTER = NOW - 100
VALID_BEFORE = NOW + 800
NONCE = b"\x11" * 32
HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
ORDER = 2 * HALF_ORDER + 1

ADMIN = "0x" + "ad" * 20
ZERO = "0x" + "00" * 20
PAYER = Account.from_key("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
MERCHANT = Account.from_key("0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d")
STRANGER = Account.from_key("0x" + "77" * 32)

TERMS = [
    {"name": "from", "type": "address"},
    {"name": "to", "type": "address"},
    {"name": "value", "type": "uint256"},
    {"name": "validAfter", "type": "uint256"},
    {"name": "validBefore", "type": "uint256"},
    {"name": "nonce", "type": "bytes32"},
]
TYPES = {
    "TransferWithAuthorization": TERMS,
    "ReceiveWithAuthorization": TERMS,
    "CancelAuthorization": [
        {"name": "authorizer", "type": "address"},
        {"name": "nonce", "type": "bytes32"},
    ],
    "Permit": [
        {"name": "owner", "type": "address"},
        {"name": "spender", "type": "address"},
        {"name": "value", "type": "uint256"},
        {"name": "nonce", "type": "uint256"},
        {"name": "deadline", "type": "uint256"},
    ],
}


@dataclass(frozen=True)
class Deployed:
    """A contract and its address."""

    evm: EVM
    artifact: Artifact
    address: str

    def send(self, function: str, *arguments: Any, sender: str = ADMIN) -> ExecutionResult:
        data = self.artifact.encode(function, *arguments)
        return self.evm.transact(self.address, data, sender=sender, gas=10_000_000)

    def read(self, function: str, *arguments: Any) -> Any:
        result = self.evm.call(self.address, self.artifact.encode(function, *arguments))
        assert result.success, result.error
        return self.artifact.decode(function, result.output)

    def events(self, result: ExecutionResult) -> list[Decoded | None]:
        assert result.success, result.error
        return [self.artifact.decode_log(log.topics, log.data) for log in result.logs]


def chain(timestamp: int = NOW, chain_id: int = CHAIN_ID) -> EVM:
    evm = EVM("osaka", chain_id=chain_id, timestamp=timestamp)
    for address in (ADMIN, PAYER.address, MERCHANT.address, STRANGER.address):
        evm.set_account(address, balance=10**18)
    return evm


def deployed(evm: EVM, name: str, *arguments: Any) -> Deployed:
    contract = artifact(name)
    result = evm.deploy(contract.initcode(*arguments), sender=ADMIN, gas=6_000_000)
    assert result.success and result.created_address, result.error
    return Deployed(evm, contract, "0x" + result.created_address.hex())


def dollar(evm: EVM, balance: int = 10_000_000) -> Deployed:
    """Deploys the token and funds the payer."""
    token = deployed(evm, "Token", "USD Coin", "USDC", 6, ADMIN)
    assert token.send("mint", PAYER.address, balance).success
    return token


def circles_dollar(evm: EVM, balance: int = 10_000_000) -> Deployed:
    """Deploys Circle's token and funds the payer."""
    made = evm.deploy(circle.library().initcode(), sender=ADMIN, gas=6_000_000)
    assert made.success and made.created_address, made.error
    contract = circle.token("0x" + made.created_address.hex())
    # Since Osaka (EIP-7825), a transaction has at most 16,777,216 gas.
    result = evm.deploy(contract.initcode(), sender=ADMIN, gas=16_000_000)
    assert result.success and result.created_address, result.error
    token = Deployed(evm, contract, "0x" + result.created_address.hex())
    for function, *arguments in circle.initial_calls("USD Coin", "USDC", ADMIN):
        assert token.send(function, *arguments).success, function
    assert token.send("mint", PAYER.address, balance).success
    return token


def typed_data(token: str, kind: str, message: dict[str, Any], **domain: Any) -> dict[str, Any]:
    """Returns EIP-712 data of a message for the token.

    ``domain`` replaces members of the token's EIP-712 domain.
    """
    shown = {"name": "USD Coin", "version": "2", "chainId": CHAIN_ID, "verifyingContract": token}
    domain_type = [
        {"name": "name", "type": "string"},
        {"name": "version", "type": "string"},
        {"name": "chainId", "type": "uint256"},
        {"name": "verifyingContract", "type": "address"},
    ]
    return {
        "types": {"EIP712Domain": domain_type, kind: TYPES[kind]},
        "primaryType": kind,
        "domain": {**shown, **domain},
        "message": message,
    }


def terms(**changes: Any) -> dict[str, Any]:
    return {
        "from": PAYER.address,
        "to": MERCHANT.address,
        "value": 10_000_000,
        "validAfter": VALID_AFTER,
        "validBefore": VALID_BEFORE,
        "nonce": NONCE,
        **changes,
    }


def signature(data: dict[str, Any], signer: Any = PAYER) -> bytes:
    """Signs EIP-712 data. Returns the 65 bytes r || s || v."""
    return bytes(signer.sign_message(encode_typed_data(full_message=data)).signature)


def split(packed: bytes) -> tuple[int, bytes, bytes]:
    """Splits a signature into v, r and s."""
    return packed[64], packed[:32], packed[32:64]


def order(message: dict[str, Any]) -> Sequence[Any]:
    """Returns the terms in the order of the arguments with which all transfer functions begin."""
    return [message[field["name"]] for field in TERMS]
