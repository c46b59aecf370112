"""Tests signers that are slow or fail: no transaction is lost, and no nonce gap remains."""

import asyncio
import os
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from eth_account import Account
from eth_keys.datatypes import PrivateKey

from fastevm.payments import (
    AwsKey,
    GoogleKey,
    InvalidTerms,
    Progress,
    Reason,
    ServiceSigner,
    SignerUnavailable,
    State,
)
from fastevm.payments.kms import address_of
from fastevm.payments.signatures import SECP256K1_ORDER
from tests.max_wait import MAX_WAIT

from .market import Market
from .stores import BOTH

STORES = BOTH


class FakeService:
    """A key service in memory. It is slow, fails on request, and never repeats a signature."""

    def __init__(self, key: bytes, delay: float = 0.0) -> None:
        self._key = ec.derive_private_key(int.from_bytes(key, "big"), ec.SECP256K1())
        self.delay, self.failing, self.asked = delay, 0, 0
        # Calls that run now, and the most that ran at a time.
        self.signing, self.most = 0, 0
        self.raises: type[Exception] = ConnectionError

    async def public_key(self) -> bytes:
        return self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )

    async def sign_digest(self, digest: bytes) -> bytes:
        self.asked += 1
        self.signing += 1
        self.most = max(self.most, self.signing)
        await asyncio.sleep(self.delay)
        self.signing -= 1
        if self.failing:
            self.failing -= 1
            raise self.raises("the service is away")
        der = self._key.sign(digest, ec.ECDSA(utils.Prehashed(_Keccak())))
        r, s = utils.decode_dss_signature(der)
        return utils.encode_dss_signature(r, SECP256K1_ORDER - s) if os.urandom(1)[0] & 1 else der


class _Keccak(utils.hashes.HashAlgorithm):  # type: ignore[name-defined]
    """A hash algorithm of 32-byte digests, in place of Keccak, which cryptography lacks."""

    name, digest_size, block_size = "sha256", 32, 64


@pytest.fixture
def service(still: Market) -> FakeService:
    return FakeService(bytes(still.shop.key))


async def test_what_a_service_signs_is_a_transaction_of_its_account(
    still: Market, service: FakeService
) -> None:
    signer = await ServiceSigner.open(service)
    assert signer.address == still.shop.address
    fields = {
        "type": 2, "chainId": 1, "nonce": 7, "gas": 21_000, "to": still.payer.address, "value": 3,
        "data": "0x", "maxFeePerGas": 10, "maxPriorityFeePerGas": 2,
    }  # fmt: skip
    raws = {await signer.sign_transaction(fields) for _ in range(8)}
    assert len(raws) > 1, "a service answers differently each time"
    assert {Account.recover_transaction(raw) for raw in raws} == {signer.address}


async def test_captures_are_signed_by_a_slow_service_side_by_side(
    still: Market, service: FakeService
) -> None:
    service.delay = 1.0
    merchant = still.merchant(signer=await ServiceSigner.open(service))
    names = [f"order-{number}" for number in range(5)]
    for name in names:
        await still.stored(merchant, name)
    ends = await merchant.capture_many(names, until=State.CAPTURING)
    assert service.most > 1
    assert all(getattr(end, "state", None) is State.CAPTURING for end in ends.values())
    still.mine()
    for name in names:
        assert (await merchant.wait(name, State.PAID, MAX_WAIT)).paid
    assert service.asked == 5


async def test_the_store_is_free_while_a_service_signs(still: Market, service: FakeService) -> None:
    service.delay = 5.0
    merchant = still.merchant(signer=await ServiceSigner.open(service))
    await still.stored(merchant, "order-1")
    await still.stored(merchant, "order-2")
    capturing = asyncio.create_task(merchant.capture("order-1", until=State.CAPTURING))
    while (await merchant.order("order-1")).state is not State.CAPTURING:
        await asyncio.sleep(0.01)
    other = still.merchant()
    await other.void("order-2")
    assert service.signing == 1
    assert not capturing.done()
    (reserved,) = await other.submissions("order-1")
    assert (reserved.progress, reserved.transaction_hash) == (Progress.RESERVED, "")
    await capturing


@pytest.mark.parametrize("raises", [ConnectionError, TimeoutError, RuntimeError, KeyError])
async def test_a_service_that_fails_is_asked_again(
    still: Market, service: FakeService, raises: type[Exception]
) -> None:
    merchant = still.merchant(signer=await ServiceSigner.open(service))
    await still.stored(merchant)
    service.failing, service.raises = 2, raises
    order = await merchant.capture("order-1", until=State.CAPTURING)
    order = await merchant.order("order-1")
    assert (order.state, order.reason) == (State.CAPTURING, Reason.SIGNER_UNAVAILABLE)
    while not still.node.pool.executable_count:
        await merchant.reconcile()
        await asyncio.sleep(0.1)
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    assert service.asked == 3
    assert len(await merchant.submissions("order-1")) == 1


async def test_another_process_signs_what_one_reserved_and_left(
    still: Market, service: FakeService
) -> None:
    service.failing = 1
    leaving = still.merchant(signer=await ServiceSigner.open(service))
    await still.stored(leaving)
    await leaving.capture("order-1", until=State.CAPTURING, timeout=0)
    await asyncio.sleep(1.1)
    other = still.merchant()
    await other.reconcile()
    still.mine()
    assert (await other.wait("order-1", State.PAID, MAX_WAIT)).paid


async def test_an_order_that_ends_before_it_is_signed_leaves_no_gap(
    still: Market, service: FakeService
) -> None:
    merchant = still.merchant(signer=await ServiceSigner.open(service))
    await still.stored(merchant, "order-1", valid_before=still.now + 20)
    await still.stored(merchant, "order-2")
    service.failing = 1
    await merchant.capture("order-1", until=State.CAPTURING, timeout=0)
    still.warp(still.now + 60)
    await merchant.reconcile()
    assert (await merchant.order("order-1")).state is State.EXPIRED
    await merchant.reconcile()
    await merchant.capture("order-2", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-2", State.PAID, MAX_WAIT)).paid
    assert [submission.account_nonce for submission in await merchant.submissions("order-2")] == [1]


async def test_a_service_that_signs_with_another_key_is_not_believed(
    still: Market, service: FakeService
) -> None:
    signer = ServiceSigner(service, still.payer.address)
    fields = {
        "type": 2, "chainId": 1, "nonce": 7, "gas": 21_000, "to": still.payer.address, "value": 3,
        "data": "0x", "maxFeePerGas": 10, "maxPriorityFeePerGas": 2,
    }  # fmt: skip
    with pytest.raises(SignerUnavailable, match="is not that of"):
        await signer.sign_transaction(fields)


class Aws:
    """Fakes the two methods of the AWS client that signers use."""

    def __init__(self, service: FakeService) -> None:
        self.service = service

    def get_public_key(self, *, KeyId: str) -> dict[str, Any]:
        return {"PublicKey": asyncio.run(self.service.public_key())}

    def sign(self, *, KeyId: str, Message: bytes, **more: str) -> dict[str, Any]:
        assert more == {"MessageType": "DIGEST", "SigningAlgorithm": "ECDSA_SHA_256"}
        assert len(Message) == 32
        return {"Signature": asyncio.run(self.service.sign_digest(Message))}


class Google:
    """Fakes the two methods of the Google client that signers use."""

    def __init__(self, service: FakeService) -> None:
        self.service = service

    async def get_public_key(self, request: dict[str, Any]) -> Any:
        key = serialization.load_der_public_key(await self.service.public_key())
        pem = key.public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return type("Answer", (), {"pem": pem.decode()})

    async def asymmetric_sign(self, request: dict[str, Any]) -> Any:
        signature = await self.service.sign_digest(request["digest"]["sha256"])
        return type("Answer", (), {"signature": signature})


@pytest.mark.parametrize("kind", [AwsKey, GoogleKey])
async def test_the_services_of_aws_and_google_are_asked_as_they_want_it(
    still: Market, service: FakeService, kind: Any
) -> None:
    client = Aws(service) if kind is AwsKey else Google(service)
    merchant = still.merchant(signer=await ServiceSigner.open(kind(client, "key/1")))
    await still.stored(merchant)
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid


def test_a_key_of_another_curve_is_refused() -> None:
    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    der = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    for wrong in (der, b"", b"-----BEGIN", PrivateKey(b"\1" * 32).public_key.to_bytes()):
        with pytest.raises(InvalidTerms, match="public_key"):
            address_of(wrong)
