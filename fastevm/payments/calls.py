"""ABI call data of the token functions that payments use."""

from typing import Any, Final

from eth_abi.abi import encode
from eth_utils.crypto import keccak

from fastevm.payments.authorization import Authorization, Cancellation, Kind
from fastevm.payments.signatures import Signature

_TERMS: Final = "address,address,uint256,uint256,uint256,bytes32"
_VERBS: Final = {
    Kind.TRANSFER: "transferWithAuthorization",
    Kind.RECEIVE: "receiveWithAuthorization",
}
_VRS: Final = "uint8,bytes32,bytes32"

ERC1271_MAGIC: Final = bytes.fromhex("1626ba7e")


def call_data(signature: str, *arguments: Any) -> bytes:
    """Returns the selector of ``name(types)`` followed by the encoded arguments."""
    types = _parameters(signature[signature.index("(") + 1 : -1])
    return keccak(text=signature)[:4] + encode(types, arguments)


def _parameters(text: str) -> list[str]:
    """Splits the types at commas outside of parentheses."""
    types, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            types.append("")
        else:
            types[-1] += letter
    return types if text else []


def capture_data(authorization: Authorization, signature: Signature) -> bytes:
    """Returns call data of ``receiveWithAuthorization`` or ``transferWithAuthorization``.

    An ECDSA signature (65 bytes) is passed as v, r, s. Any other signature is passed as bytes
    (ERC-7598).
    """
    terms, verb = authorization.terms, _VERBS[authorization.kind]
    arguments = (
        terms.payer,
        terms.recipient,
        terms.value,
        terms.valid_after,
        terms.valid_before,
        terms.nonce,
    )
    if signature.is_ecdsa:
        return call_data(f"{verb}({_TERMS},{_VRS})", *arguments, *signature.vrs)
    return call_data(f"{verb}({_TERMS},bytes)", *arguments, signature.secret_bytes)


def cancel_data(cancellation: Cancellation, signature: Signature) -> bytes:
    """Returns call data of ``cancelAuthorization``, which consumes the nonce.

    Anybody may submit the call.
    """
    arguments = (cancellation.authorizer, cancellation.nonce)
    if signature.is_ecdsa:
        return call_data(f"cancelAuthorization(address,bytes32,{_VRS})", *arguments, *signature.vrs)
    return call_data(
        "cancelAuthorization(address,bytes32,bytes)", *arguments, signature.secret_bytes
    )


def balance_data(holder: str) -> bytes:
    """Returns call data of ``balanceOf(holder)``."""
    return call_data("balanceOf(address)", holder)


def transfer_data(recipient: str, amount: int) -> bytes:
    """Returns call data of ``transfer(recipient, amount)``."""
    return call_data("transfer(address,uint256)", recipient, amount)


def state_data(authorizer: str, nonce: bytes) -> bytes:
    """Returns call data of ``authorizationState(authorizer, nonce)``.

    The call returns true if the nonce is used or cancelled.
    """
    return call_data("authorizationState(address,bytes32)", authorizer, nonce)


def permit_nonce_data(holder: str) -> bytes:
    """Returns call data of ``nonces``, which returns the holder's next permit nonce (EIP-2612)."""
    return call_data("nonces(address)", holder)


def allowance_data(holder: str, spender: str) -> bytes:
    """Returns call data of ``allowance(holder, spender)``."""
    return call_data("allowance(address,address)", holder, spender)


def memo_transfer_data(recipient: str, amount: int, memo: bytes) -> bytes:
    """Returns call data of ``transferWithMemo``. ``memo`` has 32 bytes."""
    return call_data("transferWithMemo(address,uint256,bytes32)", recipient, amount, memo)


def separator_data() -> bytes:
    """Returns call data of ``DOMAIN_SEPARATOR()``."""
    return call_data("DOMAIN_SEPARATOR()")


def wallet_data(digest: bytes, signature: Signature) -> bytes:
    """Returns call data of a contract wallet's ``isValidSignature`` (ERC-1271)."""
    return call_data("isValidSignature(bytes32,bytes)", digest, signature.secret_bytes)
