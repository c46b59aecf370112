"""Tests how logs are grouped into entries: which event belongs to which transfer."""

from typing import Any

from eth_abi.abi import encode

from fastevm.payments.events import ChainLog, Event, LogKey, entries, read_log

TOKEN = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
PAYER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
SHOP = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
REFERENCE, OTHER = "0x" + "ab" * 32, "0x" + "cd" * 32


def log(index: int, event: Event, address: str = TOKEN, **arguments: Any) -> ChainLog:
    key = LogKey("0x01", "0x02", index)
    return ChainLog(key=key, block_number=1, address=address, event=event, arguments=arguments)


def transfer(index: int, amount: int = 5, sender: str = PAYER, recipient: str = SHOP) -> ChainLog:
    return log(index, Event.TRANSFER, sender=sender, recipient=recipient, amount=amount)


def test_a_log_object_is_read() -> None:
    raw = {
        "address": TOKEN.lower(),
        "topics": [Event.TRANSFER.topic, "0x" + PAYER[2:].lower().rjust(64, "0"),
                   "0x" + SHOP[2:].lower().rjust(64, "0")],
        "data": "0x" + encode(["uint256"], [7]).hex(),
        "blockNumber": "0x10", "blockHash": "0x01", "transactionHash": "0x02", "logIndex": "0x3",
        "removed": True,
    }  # fmt: skip
    read = read_log(raw)
    assert read is not None
    assert read.arguments == {"sender": PAYER, "recipient": SHOP, "amount": 7}
    assert (read.address, read.block_number, read.key.log_index) == (TOKEN, 16, 3)
    assert read.removed
    # an ERC-721 transfer has the same topic 0, a fourth topic and no data
    assert read_log({**raw, "topics": [*raw["topics"], REFERENCE], "data": "0x"}) is None
    assert read_log({**raw, "data": "0x"}) is None
    assert read_log({**raw, "topics": []}) is None
    assert read_log({**raw, "topics": [REFERENCE]}) is None


def test_an_authorization_belongs_to_the_transfer_right_after_it() -> None:
    used = log(0, Event.USED, authorizer=PAYER, nonce=REFERENCE)
    (entry,) = entries([transfer(1), used], TOKEN)
    assert entry.authorization == (PAYER, REFERENCE)
    (late,) = entries([transfer(2), used], TOKEN)
    assert late.authorization is None
    (others,) = entries([used, transfer(1, sender=SHOP)], TOKEN)
    assert others.authorization is None
    (elsewhere,) = entries(
        [log(0, Event.USED, address=SHOP, authorizer=PAYER, nonce=REFERENCE), transfer(1)], TOKEN
    )
    assert elsewhere.authorization is None


def test_several_captures_in_one_transaction_keep_their_own() -> None:
    logs = [
        log(0, Event.USED, authorizer=PAYER, nonce=REFERENCE), transfer(1, 5),
        log(2, Event.USED, authorizer=PAYER, nonce=OTHER), transfer(3, 6),
    ]  # fmt: skip
    found = {entry.amount: entry.authorization for entry in entries(logs, TOKEN)}
    assert found == {5: (PAYER, REFERENCE), 6: (PAYER, OTHER)}


def test_a_memo_belongs_to_the_transfer_right_before_it() -> None:
    memo = log(1, Event.MEMO, caller=PAYER, memo=REFERENCE)
    first, second = entries([transfer(0, 5), memo, transfer(2, 6)], TOKEN)
    assert (first.memo, second.memo) == (REFERENCE, None)


def test_a_checkout_names_a_transfer_by_payer_and_amount() -> None:
    captured = log(
        4, Event.PAYMENT_CAPTURED, SHOP, reference=REFERENCE, payer=PAYER, amount=6, maximum=9
    )
    logs = [transfer(1, 5), transfer(2, 6), transfer(3, 6, SHOP, PAYER), captured]
    assert all(entry.order is None for entry in entries(logs, TOKEN)), "anybody may claim"
    found = entries(logs, TOKEN, [captured.address])
    assert [entry.order for entry in found] == [None, REFERENCE, None]


def test_equal_payouts_are_distinguished_by_their_place() -> None:
    logs = []
    for leg, reference in enumerate((REFERENCE, OTHER)):
        logs.append(transfer(2 * leg, 5, SHOP, PAYER))
        logs.append(
            log(2 * leg + 1, Event.PAYOUT_SENT, PAYER, reference=reference, sender=SHOP,
                recipient=PAYER, amount=5)
        )  # fmt: skip
    assert [entry.payout for entry in entries(logs, TOKEN, [logs[1].address])] == [REFERENCE, OTHER]


def test_transfers_of_other_tokens_are_no_payments() -> None:
    foreign = log(0, Event.TRANSFER, SHOP, sender=PAYER, recipient=SHOP, amount=5)
    assert entries([foreign], TOKEN) == []
