"""Proofs that a caller is the payer, for a payment that the chain has published.

A settlement publishes everything in a payment header: payer, nonce, terms and signature. After the
settlement the header proves nothing. Two proofs never reach the chain:

- the id of the extension ``payment-identifier``, a secret that the payer chose for the payment;
- a challenge that the payer's key signs, in the format of the extension ``sign-in-with-x``
  (EIP-4361 text, EIP-191 signature). Wallets that are contracts use an id.
"""

import hashlib
import hmac
import json
import re
import secrets
from datetime import UTC, datetime
from typing import Any, Final

from eth_account import Account
from eth_account.messages import encode_defunct
from eth_keys.exceptions import BadSignature
from eth_utils.exceptions import ValidationError

from fastevm.payments.signatures import ECDSA_LENGTH
from fastevm.payments.x402.messages import (
    AUTHORIZATION,
    Json,
    Malformed,
    Payment,
    as_address,
    as_bytes,
    as_object,
    as_text,
    decode_header,
    encode_header,
)

IDENTIFIER: Final = "payment-identifier"
SIGN_IN: Final = "sign-in-with-x"
SIGN_IN_HEADER: Final = "SIGN-IN-WITH-X"
LEAST_SECRET: Final = 22  # characters of an id that counts as a secret: 128 bits in base64url
CHALLENGE_MS: Final = 300_000  # how long a challenge may be answered

# the form that the extension's specification requires
_ID: Final = re.compile(r"[a-zA-Z0-9_-]{16,128}")
_CHAIN: Final = re.compile("eip155:[0-9]{1,78}")
_NONCE: Final = re.compile(r"[0-9a-f]{44}")  # Unix milliseconds (12 digits), then the HMAC tag

# The declaration of ``payment-identifier`` in a 402.
DECLARED: Final[Json] = {
    "info": {"required": False},
    "schema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "required": {"type": "boolean"},
            "id": {"type": "string", "minLength": 16, "maxLength": 128,
                   "pattern": "^[a-zA-Z0-9_-]+$"},
        },
        "required": ["required"],
    },
}  # fmt: skip


# --- ids ------------------------------------------------------------------------------------------


def new_id() -> str:
    """Returns a random payment id of 128 bits."""
    return "pay_" + secrets.token_hex(16)


def id_of(payment: Payment) -> str:
    """Returns the payment's id, or "" if it has none. Raises Malformed for an invalid id."""
    extension = payment.extensions.get(IDENTIFIER)
    if extension is None:
        return ""
    info = as_object(as_object(extension, IDENTIFIER).get("info") or {}, f"{IDENTIFIER}.info")
    if info.get("id") is None:
        return ""  # the client only repeats the server's declaration of the extension
    found = as_text(info, "id")
    if _ID.fullmatch(found) is None:
        raise Malformed(f"{IDENTIFIER}: expected 16 to 128 letters, digits, '-' or '_'")
    return found


def payload_digest(payment: Payment) -> str:
    """Returns the SHA-256 of the signed payload, including the signature."""
    members = [payment.version, payment.scheme, payment.chain_id, dict(payment.payload)]
    return hashlib.sha256(json.dumps(members, sort_keys=True).encode()).hexdigest()


def secret_digest(payment: Payment) -> str:
    """Returns the hash of the payment and its id; "" if the id is missing or not secret.

    An id is not secret if it is short, or if it is made of published data.
    """
    found = id_of(payment)
    if len(found) < LEAST_SECRET:
        return ""
    signed = payment.payload[AUTHORIZATION]
    published = "".join([payment.payload["signature"], *map(str, signed.values())]).lower()
    if found.lower().removeprefix("pay_").removeprefix("0x") in published:
        return ""
    return hashlib.sha256(f"{found}\n{payload_digest(payment)}".encode()).hexdigest()


# --- challenges -----------------------------------------------------------------------------------


def challenge(secret: str, payment: Payment, url: str, now_ms: int) -> Json:
    """Returns the ``sign-in-with-x`` extension that asks for the payer's signature.

    ``secret`` is stored in the grant, so any process that reads the grant can verify the answer.
    """
    return {
        "info": _info(_nonce(secret, url, now_ms), payment, url, now_ms),
        "supportedChains": [{"chainId": f"eip155:{payment.chain_id}", "type": "eip191"}],
    }


def answered(header: str, secret: str, payment: Payment, url: str, now_ms: int) -> int | None:
    """Returns the time of the challenge, in Unix milliseconds, if the payer has signed it.

    Returns None if the answer belongs to another signer, request or payment, or comes too late.
    """
    try:
        members = decode_header(header)
        nonce, signature = as_text(members, "nonce"), as_bytes(members, "signature", ECDSA_LENGTH)
        if _NONCE.fullmatch(nonce) is None:
            return None
        made = int(nonce[:12], 16)
        if not hmac.compare_digest(nonce, _nonce(secret, url, made)):
            return None
        if not now_ms - CHALLENGE_MS <= made <= now_ms:
            return None
        payer = as_address(payment.payload[AUTHORIZATION], "from")
        text = signed_text(_info(nonce, payment, url, made), payer, payment.chain_id)
        signer = Account.recover_message(encode_defunct(text=text), signature=signature)
    except (Malformed, BadSignature, ValidationError, ValueError, OverflowError):
        return None
    return made if signer == payer else None


def answer(extension: Any, private_key: bytes | str, url: str) -> str:
    """Signs a challenge; returns the value of ``SIGN_IN_HEADER``.

    Raises Malformed if a member is missing or wrong, and if the challenge is for another URL than
    ``url``. Without this check a site could relay the challenge of another site and use the
    signature there.
    """
    members = as_object(extension, SIGN_IN)
    info = as_object(members.get("info"), "info")
    if as_text(info, "uri") != url or as_text(info, "domain") != split_address(url)[0]:
        raise Malformed(f"{SIGN_IN}: the challenge is for another address")
    chains = members.get("supportedChains")
    chains = [each for each in chains if isinstance(each, dict)] if isinstance(chains, list) else []
    names = [name for each in chains if isinstance(name := each.get("chainId"), str)]
    name = next((name for name in names if _CHAIN.fullmatch(name)), None)
    if name is None:
        raise Malformed(f"{SIGN_IN}: no supported chain")
    for member in ("version", "nonce", "issuedAt"):
        as_text(info, member)
    account = Account.from_key(private_key)
    try:
        text = signed_text(info, account.address, int(name[7:]))
        signature = account.sign_message(encode_defunct(text=text)).signature
    except (TypeError, ValueError) as fault:  # resources that are no list, text that is no UTF-8
        raise Malformed(f"{SIGN_IN}: {type(fault).__name__}") from None
    signed = {"address": account.address, "chainId": name, "type": "eip191"}
    return encode_header({**info, **signed, "signature": "0x" + bytes(signature).hex()})


def signed_text(info: Json, payer: str, chain_id: int) -> str:
    """Returns the EIP-4361 text of a challenge."""
    statement = f"{info['statement']}\n" if info.get("statement") else ""
    lines = [
        f"{info['domain']} wants you to sign in with your Ethereum account:",
        f"{payer}\n\n{statement}",
        f"URI: {info['uri']}",
        f"Version: {info['version']}",
        f"Chain ID: {chain_id}",
        f"Nonce: {info['nonce']}",
        f"Issued At: {info['issuedAt']}",
    ]
    optional = {"expirationTime": "Expiration Time", "notBefore": "Not Before",
                "requestId": "Request ID"}  # fmt: skip
    lines += [f"{label}: {info[name]}" for name, label in optional.items() if info.get(name)]
    if info.get("resources"):
        lines += ["Resources:", *(f"- {resource}" for resource in info["resources"])]
    return "\n".join(lines)


def _info(nonce: str, payment: Payment, url: str, made_ms: int) -> Json:
    paid = payment.payload[AUTHORIZATION]["nonce"]
    return {
        "domain": split_address(url)[0],
        "uri": url,
        "version": "1",
        "statement": f"Send me again what I paid for with the payment {paid}.",
        "nonce": nonce,
        "issuedAt": _time(made_ms),
        "expirationTime": _time(made_ms + CHALLENGE_MS),
    }


def split_address(url: str) -> tuple[str, str]:
    """Returns host with port, and path with query. Accepts invalid Host headers too."""
    host, slash, path = url.partition("://")[2].partition("/")
    return host, slash + path


def _time(milliseconds: int) -> str:
    at = datetime.fromtimestamp(milliseconds / 1_000, UTC).isoformat(timespec="milliseconds")
    return at.replace("+00:00", "Z")


def _nonce(secret: str, url: str, made_ms: int) -> str:
    head = f"{made_ms:012x}"
    tag = hmac.new(secret.encode(), f"{head}\n{url}".encode(), hashlib.sha256).hexdigest()
    return head + tag[:32]
