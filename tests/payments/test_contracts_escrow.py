"""Tests the escrow: hold, partial captures, void and refund, with permissions and every error."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import force_setattr

from fastevm import EVM, ExecutionResult
from fastevm.core.primitives.replace import replace
from fastevm.payments import Authorization, Domain, Kind, Terms, sign
from fastevm.payments.contracts import artifact
from fastevm.payments.escrow import (
    V1_1,
    Deployment,
    PaymentInfo,
    authorize_data,
    capture_data,
    reclaim_data,
    refund_data,
    void_data,
)

from .contract_world import ADMIN, CHAIN_ID, NOW, PAYER, STRANGER, Deployed, chain, deployed, dollar

SHOP = "0x90F79bf6EB2c4f870365E785982E1f101E93b906"
FEES = "0x" + "fe" * 20
VALUE = 1_000_000


class Till:
    """Deploys an escrow with its collectors, for a payer and an operator."""

    def __init__(self, evm: EVM | None = None) -> None:
        self.evm = evm or chain()
        self.token = dollar(self.evm, 2 * VALUE)
        self.multicall = deployed(self.evm, "Multicall")
        self.escrow = deployed(self.evm, "AuthCaptureEscrow", "0x" + "00" * 20)
        collector = self.escrow.address
        multicall = self.multicall.address
        self.collector = deployed(self.evm, "ERC3009PaymentCollector", collector, multicall)
        self.refunds = deployed(self.evm, "OperatorRefundCollector", collector)
        self.place = Deployment(collector, self.collector.address, "", self.refunds.address)
        self.info = self.terms()

    def terms(self, **changes: Any) -> PaymentInfo:
        usual = PaymentInfo(
            operator=STRANGER.address,
            payer=PAYER.address,
            receiver=SHOP,
            token="0x" + self.token.address[2:],
            max_amount=VALUE,
            pre_approval_expiry=NOW + 100,
            authorization_expiry=NOW + 1_000,
            refund_expiry=NOW + 5_000,
            max_fee_bps=100,
            salt=7,
        )
        return replace(usual, **changes)

    def signature(self, info: PaymentInfo) -> bytes:
        terms = Terms(
            payer=info.payer,
            recipient=self.collector.address,
            value=info.max_amount,
            valid_after=0,
            valid_before=info.pre_approval_expiry,
            nonce=info.nonce(CHAIN_ID, self.escrow.address),
        )
        domain = Domain("USD Coin", "2", CHAIN_ID, self.token.address)
        return sign(Authorization(domain, terms, Kind.RECEIVE), PAYER.key).secret_bytes

    def do(self, data: bytes, sender: str = STRANGER.address, at: int = NOW) -> ExecutionResult:
        self.evm.set_block(timestamp=at)
        return self.evm.transact(self.escrow.address, data, sender=sender, gas=3_000_000)

    def authorize(self, info: PaymentInfo | None = None, **how: Any) -> ExecutionResult:
        info = info or self.info
        data = authorize_data(info, self.collector.address, self.signature(info))
        return self.do(data, **how)

    def capture(self, amount: int, fee: int = 0, **how: Any) -> ExecutionResult:
        info = replace(self.info, fee_receiver=FEES) if fee else self.info
        made = capture_data(info, amount, fee, self.place)
        return self.do(made, **how)

    def balance(self, of: str) -> int:
        return int(self.token.read("balanceOf", of))

    def state(self) -> tuple[int, int]:
        key = self.info.hash(CHAIN_ID, self.escrow.address)
        _, capturable, refundable = self.escrow.read("paymentState", key)
        return capturable, refundable


def refusal(result: ExecutionResult) -> str:
    assert not result.success
    found = artifact("AuthCaptureEscrow").decode_error(result.output)
    assert found is not None, result.output.hex()
    return str(found.arguments["reason"]) if found.name == "Error" else found.name


@pytest.fixture
def till() -> Till:
    return Till()


def names(till: Till, result: ExecutionResult) -> list[str]:
    assert result.success, refusal(result)
    places = {item.address: item for item in (till.escrow, till.token)}
    found = []
    for log in result.logs:
        contract = places["0x" + log.address.hex()]
        event = contract.artifact.decode_log(log.topics, log.data)
        assert event is not None
        found.append(event.name)
    return found


def test_a_hold_is_captured_in_parts_refunded_and_the_rest_voided(till: Till) -> None:
    moved = ["PaymentAuthorized", "AuthorizationUsed", "Transfer", "Transfer"]
    assert names(till, till.authorize()) == moved
    assert till.state() == (VALUE, 0)
    store = till.escrow.read("getTokenStore", till.info.operator)
    assert till.balance(store) == VALUE
    first = till.capture(400_000)
    assert names(till, first) == ["PaymentCaptured", "TokenStoreCreated", "Transfer"]
    assert names(till, till.capture(300_000)) == ["PaymentCaptured", "Transfer"]
    assert till.state() == (300_000, 700_000)
    assert till.balance(SHOP) == 700_000
    # The operator pays refunds from its own token balance.
    till.token.send("mint", STRANGER.address, 100_000)
    till.token.send("approve", till.refunds.address, 100_000, sender=STRANGER.address)
    refunded = till.do(refund_data(till.info, 100_000, till.refunds.address))
    assert names(till, refunded) == ["PaymentRefunded", "Transfer", "Transfer"]
    assert till.state() == (300_000, 600_000)
    assert names(till, till.do(void_data(till.info))) == ["PaymentVoided", "Transfer"]
    assert till.state() == (0, 600_000)
    assert till.balance(PAYER.address) == 2 * VALUE - 600_000
    assert till.balance(store) == 0


def test_a_fee_is_taken_from_the_amount(till: Till) -> None:
    till.info = till.terms(min_fee_bps=50, max_fee_bps=100, fee_receiver=FEES)
    assert till.authorize().success
    for fee, reason in ((4_999, "FeeAmountOutOfRange"), (10_001, "FeeAmountOutOfRange")):
        assert refusal(till.capture(VALUE, fee)) == reason
    assert till.capture(VALUE, 5_000).success
    assert (till.balance(FEES), till.balance(SHOP)) == (5_000, VALUE - 5_000)


def test_the_payer_takes_back_what_was_not_captured(till: Till) -> None:
    assert till.authorize().success and till.capture(1).success
    payer = PAYER.address
    data = reclaim_data(till.info)
    assert refusal(till.do(data, payer)) == "BeforeAuthorizationExpiry"
    assert refusal(till.do(data, at=NOW + 1_000)) == "InvalidSender"
    assert names(till, till.do(data, payer, NOW + 1_000)) == ["PaymentReclaimed", "Transfer"]
    assert refusal(till.do(data, payer, NOW + 1_001)) == "ZeroAuthorization"
    assert refusal(till.capture(1, at=NOW + 1_000)) == "AfterAuthorizationExpiry"


REFUSED: dict[str, tuple[Callable[[Till], ExecutionResult], str]] = {
    "stranger authorizes": (lambda t: t.authorize(sender=PAYER.address), "InvalidSender"),
    "too late": (lambda t: t.authorize(at=NOW + 100), "AfterPreApprovalExpiry"),
    "fees above all": (lambda t: t.authorize(_raw(t, max_fee_bps=10_001)), "FeeBpsOverflow"),
    "fees upside down": (
        lambda t: t.authorize(_raw(t, min_fee_bps=101)), "InvalidFeeBpsRange",
    ),
    "expiries upside down": (
        lambda t: t.authorize(_raw(t, refund_expiry=NOW + 999)), "InvalidExpiries",
    ),
    "another payer": (
        lambda t: t.do(
            authorize_data(
                t.terms(payer=ADMIN), t.collector.address, t.signature(t.info)
            )
        ),
        "FiatTokenV2: invalid signature",
    ),
    "another receiver than signed": (
        lambda t: t.do(
            authorize_data(
                t.terms(receiver=ADMIN), t.collector.address, t.signature(t.info)
            )
        ),
        "FiatTokenV2: invalid signature",
    ),
    "a refund collector": (
        lambda t: t.do(authorize_data(t.info, t.refunds.address, t.signature(t.info))),
        "InvalidCollectorForOperation",
    ),
    "capture before": (lambda t: t.capture(1), "InsufficientAuthorization"),
    "void before": (lambda t: t.do(void_data(t.info)), "ZeroAuthorization"),
    "capture nothing": (lambda t: t.capture(0), "ZeroAmount"),
    "refund before": (
        lambda t: t.do(refund_data(t.info, 1, t.refunds.address)), "RefundExceedsCapture",
    ),
    "refund too late": (
        lambda t: t.do(refund_data(t.info, 1, t.refunds.address), at=NOW + 5_000),
        "AfterRefundExpiry",
    ),
}  # fmt: skip


def _raw(till: Till, **changes: Any) -> PaymentInfo:
    """Returns payment terms that are invalid, so that `PaymentInfo` would reject them."""
    info = till.terms()
    for name, value in changes.items():
        force_setattr(info, name, value)
    return info


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_named_and_moves_nothing(till: Till, name: str) -> None:
    act, reason = REFUSED[name]
    assert refusal(act(till)) == reason
    assert till.balance(PAYER.address) == 2 * VALUE


def test_a_payment_is_collected_once(till: Till) -> None:
    assert till.authorize().success
    assert refusal(till.authorize()) == "PaymentAlreadyCollected"
    assert till.do(void_data(till.info)).success
    assert refusal(till.authorize()) == "PaymentAlreadyCollected"


def test_a_charge_pays_at_once(till: Till) -> None:
    info, collector = till.info, till.collector.address
    encode = till.escrow.artifact.encode
    signed = till.signature(info)
    none = "0x" + "00" * 20
    data = encode("charge", info.values(), VALUE, collector, signed, 0, none)
    assert names(till, till.do(data))[0] == "PaymentCharged"
    assert till.balance(SHOP) == VALUE and till.state() == (0, VALUE)


def test_only_the_escrow_uses_stores_and_collectors(till: Till) -> None:
    assert till.authorize().success and till.capture(1).success
    store = Deployed(
        till.evm, artifact("TokenStore"), till.escrow.read("getTokenStore", STRANGER.address)
    )
    result = store.send("sendTokens", till.token.address, STRANGER.address, 1)
    assert refusal_of(store, result) == "OnlyAuthCaptureEscrow"
    info = till.info.values()
    result = till.collector.send("collectTokens", info, STRANGER.address, 1, b"")
    assert refusal_of(till.collector, result) == "OnlyAuthCaptureEscrow"


def refusal_of(contract: Deployed, result: ExecutionResult) -> str:
    found = contract.artifact.decode_error(result.output)
    assert found is not None and not result.success
    return found.name


def test_hashes_are_those_of_the_deployed_escrow() -> None:
    """The expected hashes are from the deployed contract and the published client."""
    info = PaymentInfo(
        operator="0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
        payer="0x70997970C51812dc3A010C7d01b50e0d17dc79C8",
        receiver="0x90F79bf6EB2c4f870365E785982E1f101E93b906",
        token="0x036CbD53842c5426634e7929541eC2318f3dCF7e",
        max_amount=1_000_000,
        pre_approval_expiry=1_800_000_000,
        authorization_expiry=1_800_086_400,
        refund_expiry=1_802_592_000,
        max_fee_bps=100,
        salt=int("22" * 32, 16),
    )
    nonce = "996c14fa0e580089ed356c04c088975a263f8a646c0995949b1a6c6d7c9b77c1"
    key = "2fffb7048016aedee2f98aa64be6b7299d7c9bcba4f3f457d4616ec57e4c0cf1"
    assert info.nonce(84_532, V1_1.escrow).hex() == nonce
    assert info.hash(84_532, V1_1.escrow).hex() == key
    assert PaymentInfo.from_json(info.to_json()) == info


def test_selectors_and_topics_are_those_of_the_deployed_escrow() -> None:
    abi = artifact("AuthCaptureEscrow")
    selectors = {
        "authorize": "41d66202", "charge": "c449d17c", "capture": "3efa46e1", "void": "fa1cad17",
        "reclaim": "e1a2a66d", "refund": "d458db5a", "getHash": "063a70ff",
        "paymentState": "34b778ed", "getTokenStore": "9d3facde",
        "tokenStoreImplementation": "a834c89b",
    }  # fmt: skip
    assert {name: abi.selector(name).hex() for name in selectors} == selectors
    topics = {
        "PaymentAuthorized": "1c81fb2e", "PaymentCharged": "137b0e73",
        "PaymentCaptured": "ac1e0db1", "PaymentVoided": "cadce8c3",
        "PaymentReclaimed": "78e1d723", "PaymentRefunded": "1bf41537",
        "TokenStoreCreated": "d8699a10",
    }  # fmt: skip
    assert {name: abi.topic(name).hex()[:8] for name in topics} == topics
    errors = {
        "InvalidSender": "e1130dba", "ZeroAmount": "1f2a2005", "AmountOverflow": "6c0442a2",
        "ExceedsMaxAmount": "092af19e", "AfterPreApprovalExpiry": "c46cf60f",
        "InvalidExpiries": "88ef0760", "FeeBpsOverflow": "bf47e3f7",
        "InvalidFeeBpsRange": "0950d5d0", "FeeAmountOutOfRange": "7c2dcc22",
        "ZeroFeeReceiver": "b6802b7f", "InvalidFeeReceiver": "4caf6a34",
        "InvalidCollectorForOperation": "5313287d", "TokenCollectionFailed": "3c73c4a0",
        "PaymentAlreadyCollected": "ad7c145a", "AfterAuthorizationExpiry": "36f2d211",
        "InsufficientAuthorization": "604b0947", "ZeroAuthorization": "93bb7a12",
        "BeforeAuthorizationExpiry": "aa5674ad", "AfterRefundExpiry": "94271bde",
        "RefundExceedsCapture": "6295d604",
    }  # fmt: skip
    assert {name: abi.entry("error", name).selector.hex() for name in errors} == errors
