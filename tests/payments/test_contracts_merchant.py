"""Tests memos, checkouts, payouts and the wallet: permissions, and the order of their logs."""

from typing import Any

import pytest

from fastevm import ExecutionResult
from fastevm.payments.reasons import Reason, decode_revert

from .contract_world import (
    ADMIN,
    MERCHANT,
    NOW,
    PAYER,
    STRANGER,
    ZERO,
    Deployed,
    chain,
    deployed,
    dollar,
    signature,
    split,
    typed_data,
)

ORDER_ID = b"order 17".ljust(32, b"\0")


def refusal(contract: Deployed, result: ExecutionResult) -> tuple[str, dict[str, Any]]:
    assert not result.success
    found = contract.artifact.decode_error(result.output)
    assert found is not None
    return found.name, dict(found.arguments)


def all_events(result: ExecutionResult, *contracts: Deployed) -> list[tuple[str, dict[str, Any]]]:
    assert result.success, result.error
    by_address = {bytes.fromhex(contract.address[2:]): contract for contract in contracts}
    found = []
    for log in result.logs:
        event = by_address[log.address].artifact.decode_log(log.topics, log.data)
        assert event is not None
        found.append((event.name, dict(event.arguments)))
    return found


@pytest.fixture
def memo_token() -> Deployed:
    token = deployed(chain(), "MemoToken", "Memo Dollar", "MUSD", 6, ADMIN)
    assert token.send("mint", PAYER.address, 100).success
    return token


def test_every_kind_of_movement_logs_its_memo_directly_after_its_transfer(
    memo_token: Deployed,
) -> None:
    payer = PAYER.address
    assert memo_token.send("approve", ADMIN, 5, sender=payer).success
    moves = [
        memo_token.send("transferWithMemo", MERCHANT.address, 1, ORDER_ID, sender=payer),
        memo_token.send("transferFromWithMemo", payer, MERCHANT.address, 2, ORDER_ID),
        memo_token.send("mintWithMemo", payer, 3, ORDER_ID),
        memo_token.send("burnWithMemo", 4, ORDER_ID, sender=payer),
    ]
    for result, caller in zip(moves, (payer, ADMIN, ADMIN, payer), strict=True):
        (moved, _), memo = all_events(result, memo_token)
        assert moved == "Transfer"
        assert memo == ("Memo", {"caller": caller.lower(), "memo": ORDER_ID})
        assert result.logs[1].data == b""
    assert memo_token.read("balanceOf", payer) == 100 - 1 - 2 + 3 - 4
    assert memo_token.read("totalSupply") == 99


def test_a_memo_token_refuses_with_named_errors_in_their_order(memo_token: Deployed) -> None:
    def reverted_with(function: str, *arguments: Any, sender: str = STRANGER.address) -> Any:
        return refusal(memo_token, memo_token.send(function, *arguments, sender=sender))

    stranger = STRANGER.address.lower()
    assert reverted_with("transfer", ADMIN, 5) == (
        "InsufficientBalance",
        {"sender": stranger, "balance": 0, "needed": 5},
    )
    assert reverted_with("transferFrom", PAYER.address, ADMIN, 5) == (
        "InsufficientAllowance",
        {"spender": stranger, "allowance": 0, "needed": 5},
    )
    assert reverted_with("transferFrom", ZERO, ZERO, 5) == ("InvalidReceiver", {"receiver": ZERO})
    assert reverted_with("transferFrom", ZERO, ADMIN, 5) == ("InvalidSender", {"sender": ZERO})
    assert (
        reverted_with("mint", ADMIN, 5)
        == reverted_with("setPaused", 0, True)
        == ("Unauthorized", {})
    )
    for feature, call in enumerate(
        (("transferFrom", ZERO, ZERO, 5), ("mint", ADMIN, 5), ("burn", 5))
    ):
        assert memo_token.send("setPaused", feature, True).success
        assert reverted_with(*call, sender=ADMIN) == ("ContractPaused", {"feature": feature})
        result = memo_token.send(*call)
        assert decode_revert(result.output)[0] is Reason.PAUSED


def test_a_memo_tokens_permit_names_who_signed_instead(memo_token: Deployed) -> None:
    message = {
        "owner": PAYER.address, "spender": ADMIN, "value": 7, "nonce": 0, "deadline": NOW,
    }  # fmt: skip
    domain = {"name": "Memo Dollar", "version": "1"}
    data = typed_data(memo_token.address, "Permit", message, **domain)

    def permit(signer: Any, deadline: int = NOW) -> ExecutionResult:
        signed = split(signature(data, signer))
        return memo_token.send("permit", PAYER.address, ADMIN, 7, deadline, *signed)

    assert refusal(memo_token, permit(STRANGER)) == (
        "InvalidSigner",
        {"signer": STRANGER.address.lower(), "owner": PAYER.address.lower()},
    )
    expired = refusal(memo_token, permit(PAYER, NOW - 1))
    assert expired == ("ExpiredSignature", {"deadline": NOW - 1})
    assert permit(PAYER).success
    assert memo_token.read("allowance", PAYER.address, ADMIN) == 7


def test_an_order_is_paid_once_with_its_number_as_memo(memo_token: Deployed) -> None:
    shop = deployed(memo_token.evm, "MemoCheckout", memo_token.address, MERCHANT.address)
    payer = PAYER.address
    assert memo_token.send("approve", shop.address, 50, sender=payer).success
    paid = all_events(shop.send("pay", ORDER_ID, 20, sender=payer), memo_token)
    assert [name for name, _ in paid] == ["Transfer", "Memo"]
    assert paid[0][1]["to"] == MERCHANT.address.lower()
    assert paid[1][1] == {"caller": shop.address, "memo": ORDER_ID}
    again = refusal(shop, shop.send("pay", ORDER_ID, 20, sender=payer))
    assert again == ("OrderAlreadyPaid", {"orderId": ORDER_ID})


class Shop:
    """Deploys a checkout for the token, and makes captures with the payer's permit."""

    def __init__(self) -> None:
        self.token = dollar(chain())
        self.checkout = deployed(self.token.evm, "Checkout", self.token.address, MERCHANT.address)

    def capture(
        self, amount: int, maximum: int = 500, sender: str = MERCHANT.address, nonce: int = 0,
        order_id: bytes = ORDER_ID,
    ) -> ExecutionResult:  # fmt: skip
        message = {
            "owner": PAYER.address,
            "spender": self.checkout.address,
            "value": maximum,
            "nonce": nonce,
            "deadline": NOW + 60,
        }
        signed = signature(typed_data(self.token.address, "Permit", message))
        terms = (order_id, PAYER.address, amount, maximum, NOW + 60, *split(signed))
        return self.checkout.send("capture", *terms, sender=sender)


def test_a_checkout_captures_at_or_below_the_maximum_and_logs_both() -> None:
    shop = Shop()
    events = all_events(shop.capture(499), shop.token, shop.checkout)
    assert [name for name, _ in events] == ["Approval", "Transfer", "PaymentCaptured"]
    assert events[2][1] == {
        "orderId": ORDER_ID,
        "payer": PAYER.address.lower(),
        "amount": 499,
        "authorizedMaximum": 500,
    }
    assert shop.token.read("balanceOf", MERCHANT.address) == 499
    assert shop.capture(500, nonce=1, order_id=b"\x02" * 32).success


def test_a_checkout_asks_for_the_merchant_then_the_order_then_the_maximum() -> None:
    shop = Shop()
    assert shop.capture(1).success
    wrong = shop.capture(501, sender=STRANGER.address)
    assert refusal(shop.checkout, wrong) == ("NotMerchant", {})
    again = refusal(shop.checkout, shop.capture(501))
    assert again == ("OrderAlreadyCaptured", {"orderId": ORDER_ID})
    above = refusal(shop.checkout, shop.capture(501, order_id=b"\x02" * 32))
    assert above == ("AmountExceedsMaximum", {})


def test_a_checkout_passes_on_why_the_token_refused_and_leaves_the_order_open() -> None:
    shop = Shop()
    assert shop.token.send("pause").success
    reverted = refusal(shop.checkout, shop.capture(1))
    assert reverted == ("Error", {"reason": "Pausable: paused"})
    assert shop.token.send("unpause").success
    assert shop.capture(1).success


@pytest.fixture
def payout() -> tuple[Deployed, Deployed]:
    token = dollar(chain())
    contract = deployed(token.evm, "Payout", token.address)
    assert token.send("approve", contract.address, 10_000_000, sender=PAYER.address).success
    return token, contract


PEOPLE = ["0x" + f"{i:040x}" for i in range(0x1000, 0x1000 + 101)]


def test_every_leg_of_a_payout_carries_the_reference(payout: tuple[Deployed, Deployed]) -> None:
    token, contract = payout
    result = contract.send("sendPayouts", ORDER_ID, PEOPLE[:2], [7, 8], sender=PAYER.address)
    events = all_events(result, token, contract)
    assert [name for name, _ in events] == ["Transfer", "PayoutSent"] * 2
    assert events[3][1] == {
        "batchReference": ORDER_ID,
        "sender": PAYER.address.lower(),
        "recipient": PEOPLE[1],
        "amount": 8,
    }
    again = contract.send("sendPayouts", ORDER_ID, [], [], sender=PAYER.address)
    reverted = refusal(contract, again)
    assert reverted == ("BatchAlreadyProcessed", {"batchReference": ORDER_ID})


def test_a_split_gives_floors_and_what_rounding_leaves_to_the_one_named(
    payout: tuple[Deployed, Deployed],
) -> None:
    token, contract = payout
    shares = [3333, 3333, 3334]
    split_of_101 = (ORDER_ID, 101, PEOPLE[:3], shares, 1)
    assert contract.send("splitPayment", *split_of_101, sender=PAYER.address).success
    legs = [token.read("balanceOf", person) for person in PEOPLE[:3]]
    assert legs == [33, 35, 33]


def test_payouts_refuse_what_does_not_add_up(payout: tuple[Deployed, Deployed]) -> None:
    _, contract = payout

    def reverted_with(function: str, *arguments: Any) -> str:
        return refusal(contract, contract.send(function, *arguments, sender=PAYER.address))[0]

    assert reverted_with("sendPayouts", ORDER_ID, PEOPLE[:2], [1]) == "InvalidArrayLengths"
    assert reverted_with("sendPayouts", ORDER_ID, [], []) == "TooManyRecipients"
    assert reverted_with("sendPayouts", ORDER_ID, PEOPLE, [1] * 101) == "TooManyRecipients"
    two = PEOPLE[:2]
    assert reverted_with("splitPayment", ORDER_ID, 9, two, [5000], 0) == "InvalidArrayLengths"
    assert reverted_with("splitPayment", ORDER_ID, 9, two, [5000, 5000], 2) == "TooManyRecipients"
    for shares in ([5000, 4999], [5000, 5001], [65535, 65535]):
        assert reverted_with("splitPayment", ORDER_ID, 9, two, shares, 0) == "InvalidBasisPoints"
    hundred = contract.send("sendPayouts", ORDER_ID, PEOPLE[:100], [1] * 100, sender=PAYER.address)
    assert hundred.success


def test_a_wallet_calls_out_for_its_owner_only_and_passes_on_refusals() -> None:
    token = dollar(chain())
    wallet = deployed(token.evm, "Wallet", STRANGER.address)
    assert token.send("mint", wallet.address, 10).success
    give = token.artifact.encode("transfer", ADMIN, 4)
    reverted = refusal(wallet, wallet.send("execute", token.address, 0, give))
    assert reverted == ("NotOwner", {})
    owner = STRANGER.address
    assert wallet.send("execute", token.address, 0, give, sender=owner).success
    assert token.read("balanceOf", ADMIN) == 4
    too_much = token.artifact.encode("transfer", ADMIN, 7)
    reverted = refusal(wallet, wallet.send("execute", token.address, 0, too_much, sender=owner))
    assert reverted == ("Error", {"reason": "ERC20: transfer amount exceeds balance"})
