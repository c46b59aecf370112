"""Signing by a key management service: it keeps the key, signs digests, and is asked over the net.

Services answer with a DER signature without the recovery id, and with ``s`` in either half. Both
are put right here, and what they signed is held against the account before it is used.
"""

import asyncio
from typing import Any, Final, Protocol

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256K1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_der_public_key,
    load_pem_public_key,
)
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from eth_keys.datatypes import Signature as KeySignature
from eth_keys.exceptions import BadSignature
from eth_utils.address import to_checksum_address
from eth_utils.crypto import keccak
from eth_utils.exceptions import ValidationError

from fastevm.payments.errors import InvalidTerms, SignerUnavailable
from fastevm.payments.signatures import SECP256K1_ORDER

SERVICE_SECONDS: Final = 10.0  # that a service may take for one answer


class KeyService(Protocol):
    """One secp256k1 key in a service. Whatever it raises means that it did not sign."""

    async def public_key(self) -> bytes:
        """The key's SubjectPublicKeyInfo, as DER or PEM."""
        ...

    async def sign_digest(self, digest: bytes) -> bytes:
        """A DER signature over these 32 bytes."""
        ...


class AwsKey:
    """A key of AWS KMS (ECC_SECG_P256K1, SIGN_VERIFY). ``client`` is ``boto3.client("kms")``."""

    def __init__(self, client: Any, key_id: str) -> None:
        self._client, self._key_id = client, key_id

    async def public_key(self) -> bytes:
        """GetPublicKey."""
        told = await asyncio.to_thread(self._client.get_public_key, KeyId=self._key_id)
        return bytes(told["PublicKey"])

    async def sign_digest(self, digest: bytes) -> bytes:
        """Sign, of a digest."""
        told = await asyncio.to_thread(
            self._client.sign,
            KeyId=self._key_id,
            Message=digest,
            MessageType="DIGEST",
            SigningAlgorithm="ECDSA_SHA_256",
        )
        return bytes(told["Signature"])


class GoogleKey:
    """A key version of Google Cloud KMS (EC_SIGN_SECP256K1_SHA256).

    ``client`` is a ``KeyManagementServiceAsyncClient``, ``name`` the version's resource name. The
    keccak digest goes where a SHA-256 digest is expected: both have 32 bytes.
    """

    def __init__(self, client: Any, name: str) -> None:
        self._client, self._name = client, name

    async def public_key(self) -> bytes:
        """The key as PEM."""
        told = await self._client.get_public_key(request={"name": self._name})
        return str(told.pem).encode()

    async def sign_digest(self, digest: bytes) -> bytes:
        """AsymmetricSign."""
        told = await self._client.asymmetric_sign(
            request={"name": self._name, "digest": {"sha256": digest}}
        )
        return bytes(told.signature)


class ServiceSigner:
    """Signs transactions with a key in a service; :meth:`open` asks for the account first."""

    def __init__(self, service: KeyService, address: str) -> None:
        self._service, self._address = service, address

    @classmethod
    async def open(cls, service: KeyService) -> "ServiceSigner":
        """The signer of a service's key; SignerUnavailable, InvalidTerms for another curve."""
        told = await _asked(service.public_key())
        return cls(service, address_of(told))

    @property
    def address(self) -> str:
        """The account."""
        return self._address

    async def sign_transaction(self, fields: dict[str, Any]) -> bytes:
        """The raw bytes of the signed transaction; SignerUnavailable."""
        transaction = TypedTransaction.from_dict(fields)
        digest = bytes(transaction.hash())
        v, r, s = recoverable(await _asked(self._service.sign_digest(digest)), digest, self.address)
        signed = TypedTransaction.from_dict({**fields, "v": v, "r": r, "s": s})
        return bytes(signed.encode())

    def __repr__(self) -> str:
        return f"<ServiceSigner of {self.address}>"


async def _asked(answer: Any) -> bytes:
    """What a service says, within its time; whatever goes wrong is SignerUnavailable."""
    try:
        async with asyncio.timeout(SERVICE_SECONDS):
            return bytes(await answer)
    except Exception as error:  # each service's client has errors of its own
        raise SignerUnavailable(f"the key service: {type(error).__name__}") from None


def address_of(public_key: bytes) -> str:
    """The account of a public key, given as DER or PEM."""
    load = load_pem_public_key if public_key.lstrip().startswith(b"-----") else load_der_public_key
    try:
        key = load(public_key)
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidTerms("public_key: expected a SubjectPublicKeyInfo") from None
    if not isinstance(key, EllipticCurvePublicKey) or not isinstance(key.curve, SECP256K1):
        raise InvalidTerms("public_key: expected a key on secp256k1")
    point = key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return str(to_checksum_address(keccak(point[1:])[-20:]))


def recoverable(der: bytes, digest: bytes, address: str) -> tuple[int, int, int]:
    """Parity, r and low s of a DER signature; SignerUnavailable when another account made it."""
    try:
        r, s = decode_dss_signature(der)
    except ValueError:
        raise SignerUnavailable("the key service: no DER signature") from None
    s = min(s, SECP256K1_ORDER - s)
    for parity in (0, 1):
        try:
            key = KeySignature(vrs=(parity, r, s)).recover_public_key_from_msg_hash(digest)
        except (BadSignature, ValidationError):
            continue
        if key.to_checksum_address() == address:
            return parity, r, s
    raise SignerUnavailable("the key service: signed with another key, or something else")
