"""Transaction signing with a key management service (KMS) that keeps the key.

A service returns a DER signature without recovery id, with ``s`` in either half of the curve order.
This module normalises ``s``, finds the recovery id and checks that the signature is that of the
account's key.
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

from fastevm.payments.arguments import checked
from fastevm.payments.errors import InvalidTerms, SignerUnavailable
from fastevm.payments.signatures import SECP256K1_ORDER

SERVICE_SECONDS: Final = 10.0  # limit for one answer of the service


class KeyService(Protocol):
    """A secp256k1 key in a key service. If a method raises an error, nothing was signed."""

    async def public_key(self) -> bytes:
        """Returns the key's SubjectPublicKeyInfo as DER or PEM."""
        ...

    async def sign_digest(self, digest: bytes) -> bytes:
        """Returns a DER signature of the 32-byte digest."""
        ...


@checked
class AwsKey:
    """A key of AWS KMS (ECC_SECG_P256K1, SIGN_VERIFY). ``client`` is ``boto3.client("kms")``."""

    def __init__(self, client: Any, key_id: str) -> None:
        self._client, self._key_id = client, key_id

    async def public_key(self) -> bytes:
        """Calls GetPublicKey."""
        response = await asyncio.to_thread(self._client.get_public_key, KeyId=self._key_id)
        return bytes(response["PublicKey"])

    async def sign_digest(self, digest: bytes) -> bytes:
        """Calls Sign with a digest."""
        response = await asyncio.to_thread(
            self._client.sign,
            KeyId=self._key_id,
            Message=digest,
            MessageType="DIGEST",
            SigningAlgorithm="ECDSA_SHA_256",
        )
        return bytes(response["Signature"])


@checked
class GoogleKey:
    """A key version of Google Cloud KMS (EC_SIGN_SECP256K1_SHA256).

    ``client`` is a ``KeyManagementServiceAsyncClient``, ``name`` the version's resource name. The
    keccak digest is sent in the SHA-256 digest field; both have 32 bytes.
    """

    def __init__(self, client: Any, name: str) -> None:
        self._client, self._name = client, name

    async def public_key(self) -> bytes:
        """Calls GetPublicKey; returns PEM."""
        response = await self._client.get_public_key(request={"name": self._name})
        return str(response.pem).encode()

    async def sign_digest(self, digest: bytes) -> bytes:
        """Calls AsymmetricSign."""
        response = await self._client.asymmetric_sign(
            request={"name": self._name, "digest": {"sha256": digest}}
        )
        return bytes(response.signature)


@checked
class ServiceSigner:
    """Signs transactions with a key in a service. Use :meth:`open` to create an instance."""

    def __init__(self, service: KeyService, address: str) -> None:
        self._service, self._address = service, address

    @classmethod
    async def open(cls, service: KeyService) -> "ServiceSigner":
        """Fetches the public key and returns a signer.

        Raises SignerUnavailable, or InvalidTerms if the key is not on secp256k1.
        """
        public_key = await _asked(service.public_key())
        return cls(service, address_of(public_key))

    @property
    def address(self) -> str:
        """The account's address."""
        return self._address

    async def sign_transaction(self, fields: dict[str, Any]) -> bytes:
        """Returns the raw signed transaction. Raises SignerUnavailable."""
        try:
            transaction = TypedTransaction.from_dict(fields)
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidTerms(f"fields: expected those of a typed transaction: {error}") from None
        digest = bytes(transaction.hash())
        v, r, s = recoverable(await _asked(self._service.sign_digest(digest)), digest, self.address)
        signed = TypedTransaction.from_dict({**fields, "v": v, "r": r, "s": s})
        return bytes(signed.encode())

    def __repr__(self) -> str:
        return f"<ServiceSigner of {self.address}>"


async def _asked(answer: Any) -> bytes:
    """Waits for an answer for up to ``SERVICE_SECONDS``. Raises SignerUnavailable on failure."""
    try:
        async with asyncio.timeout(SERVICE_SECONDS):
            return bytes(await answer)
    except Exception as error:  # each client library has its own exceptions
        raise SignerUnavailable(f"the key service failed: {type(error).__name__}") from None


def address_of(public_key: bytes) -> str:
    """Returns the account of a DER or PEM public key. Raises InvalidTerms for other keys."""
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
    """Returns parity, r and low s of a DER signature.

    Raises SignerUnavailable if the account's key did not make the signature.
    """
    try:
        r, s = decode_dss_signature(der)
    except ValueError:
        raise SignerUnavailable("the key service returned no DER signature") from None
    s = min(s, SECP256K1_ORDER - s)
    for parity in (0, 1):
        try:
            key = KeySignature(vrs=(parity, r, s)).recover_public_key_from_msg_hash(digest)
        except (BadSignature, ValidationError):
            continue
        if key.to_checksum_address() == address:
            return parity, r, s
    raise SignerUnavailable(f"the key service's signature is not that of {address}")
