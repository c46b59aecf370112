"""Tests single transactions: gas, state changes, and validity rules."""

from typing import Any

import pytest
import rlp
from eth_utils import keccak
from hypothesis import given, settings
from hypothesis import strategies as st

from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.execution.transaction.transaction import Transaction, sign_authorization
from fastevm.core.spec.schedule import schedule_for
from fastevm.core.state.layer import Layer
from fastevm.errors import InvalidTransaction
from fastevm.testing.execution import TransactionRunner

KEY = b"\x07" * 32
SENDER = public_key_address(KEY)
OTHER_KEY = b"\x08" * 32
OTHER = public_key_address(OTHER_KEY)
COINBASE = b"\xcc" * 20
CONTRACT = b"\x11" * 20
ETHER = 10**18
HASH = b"\1" + bytes(31)
STOPPED, REVERTED, OUT_OF_GAS, NONCE_OVERFLOW = 1, 2, 10, 24

SSTORE_1 = bytes.fromhex("6001600055")  # slot 0 := 1
CLEAR_0 = bytes.fromhex("5f5f55")  # slot 0 := 0
REVERT = bytes.fromhex("60006000fd")
LOG = bytes.fromhex("60006000a0")


def layer_of(**accounts: Any) -> Layer:
    """Returns a layer with a rich sender and ``accounts``."""
    names = {"sender": SENDER, "other": OTHER, "contract": CONTRACT, "coinbase": COINBASE}
    fields = {"sender": {"balance": ETHER}, **accounts}
    return Layer.of(
        {names[name]: account for name, account in fields.items() if account is not None}
    )


def runner(fork: str = "Osaka", layer: Layer | None = None, **options: Any) -> TransactionRunner:
    block = {"coinbase": COINBASE, **options.pop("block", {})}
    return TransactionRunner(layer or layer_of(), schedule_for(fork), block=block, **options)


def call(**fields: Any) -> Transaction:
    return Transaction.build(**{"gas_limit": 100_000, "to": CONTRACT, **fields}).sign(KEY)


def refused(
    machine: TransactionRunner, transaction: Transaction, **options: Any
) -> InvalidTransaction:
    with pytest.raises(InvalidTransaction) as caught:
        machine.run(transaction, **options)
    return caught.value


def test_a_transfer_moves_value_pays_for_gas_and_raises_the_nonce() -> None:
    machine = runner(block={"base_fee": 10})
    result = machine.run(call(max_fee_per_gas=100, max_priority_fee_per_gas=7, value=5))
    layer = machine.layer
    assert (result["status"], result["gas_used"], result["price"]) == (STOPPED, 21_000, 17)
    assert layer.balance(SENDER) == ETHER - 5 - 21_000 * 17
    assert layer.balance(COINBASE) == 21_000 * 7
    assert layer.balance(CONTRACT) == 5
    assert layer.nonce(SENDER) == 1


@settings(max_examples=40)
@given(
    st.integers(0, 50),
    st.integers(0, 100),
    st.integers(0, 100),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_ether_is_only_burnt_by_the_base_fee(
    base_fee: int, cap: int, tip: int, legacy: bool, value: int
) -> None:
    cap = max(cap, base_fee)
    tip = min(cap, tip)
    fees = (
        {"gas_price": cap} if legacy else {"max_fee_per_gas": cap, "max_priority_fee_per_gas": tip}
    )
    machine = runner(block={"base_fee": base_fee})
    result = machine.run(call(value=value, **fees))
    price = cap if legacy else min(cap, base_fee + tip)
    assert result["price"] == price
    total = sum(machine.layer.balance(a) for a in (SENDER, COINBASE, CONTRACT))
    assert total == ETHER - result["gas_used"] * base_fee
    assert machine.layer.balance(COINBASE) == result["gas_used"] * (price - base_fee)


def test_before_london_the_coinbase_gets_the_whole_price() -> None:
    machine = runner("Berlin", block={"base_fee": 3})
    machine.run(call(gas_price=9))
    assert machine.layer.balance(COINBASE) == 21_000 * 9


def test_the_blob_fee_is_burnt_at_the_price_of_the_block() -> None:
    machine = runner(block={"blob_base_fee": 3})
    blob = call(max_fee_per_gas=1, max_fee_per_blob_gas=50, blob_versioned_hashes=[HASH, HASH])
    result = machine.run(blob)
    assert result["blob_gas_used"] == 2 * 131_072
    assert machine.layer.balance(SENDER) == ETHER - 21_000 * 0 - 3 * 2 * 131_072


def test_a_payment_of_zero_touches_the_coinbase() -> None:
    empty = {"balance": 0, "nonce": 0}
    machine = runner("SpuriousDragon", layer_of(coinbase=empty))
    assert machine.layer.account(COINBASE) is not None
    machine.run(call())
    assert machine.layer.account(COINBASE) is None
    machine = runner("Homestead")
    machine.run(call())
    assert machine.layer.account(COINBASE) is not None


def test_funds_may_be_exactly_enough() -> None:
    exact = 100_000 * 3 + 7
    machine = runner(layer=layer_of(sender={"balance": exact}))
    assert machine.run(call(gas_price=3, value=7))["status"] == STOPPED
    machine = runner(layer=layer_of(sender={"balance": exact - 1}))
    error = refused(machine, call(gas_price=3, value=7))
    assert (error.code, error.have, error.want) == ("insufficient_funds", exact - 1, exact)
    assert "insufficient funds for gas * price + value: address 0x" in str(error)


@pytest.mark.parametrize(
    "fields",
    [
        {"gas_price": 2**250},
        {"gas_price": 2**239, "value": 2**256 - 1},
        {"max_fee_per_gas": 1, "max_fee_per_blob_gas": 2**240, "blob_versioned_hashes": [HASH]},
        {
            "max_fee_per_gas": 1,
            "value": 2**256 - 2**241,
            "max_fee_per_blob_gas": 2**234,
            "blob_versioned_hashes": [HASH] * 6,
        },
    ],
)
def test_a_cost_over_256_bits_counts_as_insufficient_funds(fields: dict) -> None:
    machine = runner(layer=layer_of(sender={"balance": 2**256 - 1}))
    error = refused(machine, call(**fields))
    assert error.code == "insufficient_funds"
    assert "exceeds 256 bits" in str(error) or error.want > 2**256 - 2**242


def test_a_failed_call_keeps_nonce_and_payment_and_nothing_else() -> None:
    for code, status in ((SSTORE_1 + LOG + REVERT, REVERTED), (SSTORE_1 + b"\x50", 11)):
        machine = runner(layer=layer_of(contract={"code": code}))
        result = machine.run(call(gas_price=2, value=9))
        assert result["status"] == status
        assert result["logs"] == []
        assert machine.layer.storage(CONTRACT, 0) == 0
        assert machine.layer.balance(CONTRACT) == 0
        assert machine.layer.nonce(SENDER) == 1
        assert machine.layer.balance(SENDER) == ETHER - 2 * result["gas_used"]
    assert result["gas_used"] == 100_000


@pytest.mark.parametrize(
    ("fork", "quotient", "refund"), [("Berlin", 2, 15_000), ("London", 5, 4_800)]
)
def test_the_refund_is_capped_by_a_share_of_the_gas(fork: str, quotient: int, refund: int) -> None:
    code = bytes.fromhex("6000600055") + bytes.fromhex("6000600155")
    layer = layer_of(contract={"code": code, "storage": {0: 1, 1: 1}})
    item = runner(fork, layer_of(contract={"code": code[:5], "storage": {0: 1}}))
    result = item.run(call())
    assert result["gas_refunded"] == min(refund, result["gas_before_refund"] // quotient)
    result = runner(fork, layer).run(call())
    assert result["gas_refunded"] == min(2 * refund, result["gas_before_refund"] // quotient)
    assert result["gas_used"] == result["gas_before_refund"] - result["gas_refunded"]


def test_data_pays_at_least_the_floor() -> None:
    data = b"\1" * 100
    result = runner().run(call(data=data))
    assert result["gas_used"] == 21_000 + 40 * 100
    assert result["gas_before_refund"] == 21_000 + 40 * 100
    assert runner("Cancun").run(call(data=data))["gas_used"] == 21_000 + 16 * 100
    # The refund does not reduce the gas below the floor.
    layer = layer_of(contract={"code": CLEAR_0, "storage": {0: 1}})
    result = runner(layer=layer).run(call(data=data))
    assert result["gas_before_refund"] == 21_000 + 1_600 + 5_000 + 4
    assert result["gas_refunded"] == 4_800
    assert result["gas_used"] == 25_000


def test_the_coinbase_is_warm_from_shanghai_on() -> None:
    code = bytes.fromhex("413150")  # BALANCE of the coinbase
    used = {}
    for fork in ("Paris", "Shanghai"):
        used[fork] = runner(fork, layer_of(contract={"code": code})).run(call())["gas_used"]
    assert used["Paris"] - used["Shanghai"] == 2_500


def test_access_lists_warm_addresses_and_slots() -> None:
    code = bytes.fromhex("60055450" + "73" + OTHER.hex() + "3150")
    machine = runner(layer=layer_of(contract={"code": code}))
    cold = machine.run(call(access_list=[]))
    warm = machine.run(call(nonce=1, access_list=[(CONTRACT, [5]), (OTHER, [])]))
    saved = 2_000 + 2_500
    assert cold["gas_used"] - warm["gas_used"] == saved - (2 * 2_400 + 1_900)


def test_sender_and_recipient_are_warm() -> None:
    code = bytes.fromhex("73" + SENDER.hex() + "3150" + "303150")
    result = runner(layer=layer_of(contract={"code": code})).run(call())
    assert result["gas_used"] == 21_000 + 3 + 100 + 2 + 2 + 100 + 2


def test_logs_and_output_belong_to_the_transaction() -> None:
    code = LOG * 2 + bytes.fromhex("602a60005260206000f3")
    machine = runner(layer=layer_of(contract={"code": code}))
    result = machine.run(call())
    assert [(a, i) for a, _, i in result["logs"]] == [(CONTRACT, 0), (CONTRACT, 1)]
    assert result["output"] == (42).to_bytes(32, "big")


def test_a_creation_puts_code_at_the_address_of_sender_and_nonce() -> None:
    initcode = bytes.fromhex("60006000f3")
    machine = runner(layer=layer_of(sender={"balance": ETHER, "nonce": 300}))
    result = machine.run(call(to=None, nonce=300, data=initcode, value=4))
    address = keccak(rlp.encode([SENDER, 300]))[12:]
    assert (result["status"], result["created"]) == (STOPPED, address)
    assert machine.layer.nonce(SENDER) == 301
    assert machine.layer.nonce(address) == 1
    assert machine.layer.balance(address) == 4


@pytest.mark.parametrize("nonce", [0, 1, 127, 128, 255, 256, 2**32, 2**64 - 2])
def test_created_addresses_for_nonces_of_every_width(nonce: int) -> None:
    machine = runner(layer=layer_of(sender={"balance": ETHER, "nonce": nonce}))
    result = machine.run(call(to=None, nonce=nonce))
    assert result["created"] == keccak(rlp.encode([SENDER, nonce]))[12:]


def test_a_failed_creation_names_its_address_all_the_same() -> None:
    machine = runner()
    result = machine.run(call(to=None, data=REVERT))
    assert result["status"] == REVERTED
    assert result["created"] == keccak(rlp.encode([SENDER, 0]))[12:]
    assert machine.layer.account(result["created"]) is None


@pytest.mark.parametrize(
    ("code", "fields", "setup"),
    [
        ("type_not_supported", {"type": 2}, {"fork": "Berlin"}),
        ("wrong_chain_id", {"type": 2, "chain_id": 2}, {}),
        ("nonce_too_high", {"nonce": 1}, {}),
        ("nonce_too_low", {"nonce": 0}, {"sender": {"balance": ETHER, "nonce": 1}}),
        ("nonce_max", {"nonce": 2**64 - 1}, {"sender": {"balance": ETHER, "nonce": 2**64 - 1}}),
        ("gas_limit_too_high", {"gas_limit": 2**24 + 1}, {}),
        ("sender_not_eoa", {}, {"sender": {"balance": ETHER, "code": b"\0"}}),
        (
            "sender_not_eoa",
            {},
            {"sender": {"balance": ETHER, "code": b"\xef\1\0" + bytes(20)}, "fork": "Cancun"},
        ),
        ("tip_above_fee_cap", {"max_fee_per_gas": 10, "max_priority_fee_per_gas": 11}, {}),
        ("fee_cap_too_low", {"max_fee_per_gas": 6}, {}),
        ("fee_cap_too_low", {"gas_price": 6}, {}),
        ("blob_create", {"type": 3, "to": None, "blob_versioned_hashes": [HASH]}, {}),
        ("no_blobs", {"type": 3}, {}),
        ("too_many_blobs", {"type": 3, "blob_versioned_hashes": [HASH] * 7}, {}),
        ("blob_hash_version", {"type": 3, "blob_versioned_hashes": [HASH, bytes(32)]}, {}),
        ("blob_fee_cap_too_low", {"type": 3, "blob_versioned_hashes": [HASH]}, {}),
        ("set_code_create", {"type": 4, "to": None}, {}),
        ("no_authorizations", {"type": 4}, {}),
        ("initcode_too_large", {"to": None, "data": bytes(49_153), "gas_limit": 10**7}, {}),
        ("block_gas_limit", {"gas_limit": 10**6 + 1}, {}),
        ("insufficient_funds", {"value": ETHER}, {}),
        ("intrinsic_gas", {"gas_limit": 20_999}, {}),
        ("floor_gas", {"gas_limit": 21_039, "data": b"\1"}, {}),
    ],
)
def test_each_rule_refuses_and_nothing_changes(code: str, fields: dict, setup: dict) -> None:
    setup = dict(setup)
    fork = setup.pop("fork", "Osaka")
    machine = runner(fork, layer_of(**setup), block={"base_fee": 7, "blob_base_fee": 2})
    fees = {} if "gas_price" in fields or "max_fee_per_gas" in fields else {"max_fee_per_gas": 7}
    if fields.get("type", 0) == 0 and fees:
        fees = {"gas_price": 7}
    assert (
        refused(
            machine,
            call(**fees, **fields),
            block_gas_left=10**7
            if code == ("initcode_too_large") or code == "gas_limit_too_high"
            else 10**6,
        ).code
        == code
    )


# Validity rules, the last checked rule first. A transaction that breaks several rules gets the
# error of the rule that is checked first.
ORDER = [
    ("floor_gas", {"gas_limit": 21_500, "data": b"\1" * 20}),
    ("intrinsic_gas", {"gas_limit": 100}),
    ("insufficient_funds", {"value": 2**255}),
    ("block_gas_limit", {"gas_limit": 10**8}),
    ("no_authorizations", {"authorization_list": []}),
    ("fee_cap_too_low", {"max_fee_per_gas": 1}),
    ("tip_above_fee_cap", {"max_priority_fee_per_gas": 5}),
    ("nonce_too_high", {"nonce": 5}),
    ("wrong_chain_id", {"chain_id": 9}),
]


def test_rules_are_checked_in_order() -> None:
    fields: dict[str, Any] = {"max_fee_per_gas": 7, "chain_id": 1}
    for code, change in ORDER:
        fields.update(change)
        machine = runner("Prague", block={"base_fee": 7})
        assert refused(machine, call(**fields)).code == code, fields


def test_the_words_are_those_clients_match_on() -> None:
    machine = runner(block={"base_fee": 7})
    words = {
        str(
            refused(machine, call(nonce=4, gas_price=7))
        ): "nonce too high: address {a}, tx: 4 state: 0",
        str(
            refused(machine, call(gas_price=6))
        ): "max fee per gas less than block base fee: address {a}, maxFeePerGas: 6, baseFee: 7",
        str(
            refused(machine, call(gas_price=7, gas_limit=5))
        ): "intrinsic gas too low: have 5, want 21000",
        str(
            refused(machine, call(gas_price=7, to=None, data=bytes(50_000)))
        ): "max initcode size exceeded: code size 50000 limit 49152",
    }
    for found, wanted in words.items():
        assert found.lower() == wanted.format(a="0x" + SENDER.hex()).lower()


def test_an_invalid_signature_is_refused() -> None:
    unsigned = Transaction.build(gas_limit=100_000, to=CONTRACT)
    assert refused(runner(), unsigned).code == "invalid_signature"


def test_a_delegated_sender_may_send() -> None:
    code = b"\xef\1\0" + CONTRACT
    machine = runner(layer=layer_of(sender={"balance": ETHER, "code": code}))
    assert machine.run(call())["status"] == STOPPED


def test_a_simulation_may_skip_nonce_code_and_caps() -> None:
    layer = layer_of(sender={"balance": ETHER, "nonce": 3, "code": b"\0"})
    machine = runner(layer=layer)
    result = machine.run(
        call(nonce=77, gas_limit=2**24 + 1),
        skip_nonce=True,
        skip_sender_code_check=True,
        skip_gas_cap=True,
    )
    assert result["status"] == STOPPED
    assert machine.layer.nonce(SENDER) == 4


def test_a_skipped_nonce_wraps_in_calls_and_stops_creations() -> None:
    layer = layer_of(sender={"balance": ETHER, "nonce": 2**64 - 1})
    machine = runner(layer=layer)
    result = machine.run(call(to=None, gas_price=1), skip_nonce=True)
    assert (result["status"], result["gas_used"]) == (NONCE_OVERFLOW, 53_000)
    assert machine.layer.nonce(SENDER) == 2**64 - 1
    machine.run(call(), skip_nonce=True)
    assert machine.layer.nonce(SENDER) == 0


def test_free_calls_pay_nobody_where_fees_are_optional() -> None:
    machine = runner(block={"base_fee": 7})
    assert refused(machine, call()).code == "fee_cap_too_low"
    result = machine.run(call(), fees_optional=True)
    assert result["price"] == 0
    assert machine.layer.balance(SENDER) == ETHER
    assert machine.layer.account(COINBASE) is None
    assert (
        refused(machine, call(nonce=1, gas_price=1), fees_optional=True).code == "fee_cap_too_low"
    )
    machine.run(call(nonce=1, gas_price=8), fees_optional=True)
    assert machine.layer.balance(COINBASE) == 21_000


def test_blobs_are_free_where_fees_are_optional_and_no_cap_is_named() -> None:
    machine = runner(block={"blob_base_fee": 7})
    machine.run(call(max_fee_per_gas=0, blob_versioned_hashes=[HASH]), fees_optional=True)
    assert machine.layer.balance(SENDER) == ETHER


def test_without_balance_checks_gas_is_free_and_value_appears() -> None:
    machine = runner(layer=layer_of(sender={"balance": 1}), block={"base_fee": 7})
    result = machine.run(call(gas_price=10, value=5), skip_balance=True)
    assert result["status"] == STOPPED
    assert machine.layer.balance(CONTRACT) == 5
    assert machine.layer.balance(SENDER) == 0
    assert machine.layer.account(COINBASE) is None


def test_the_block_gas_limit_may_be_skipped_up_to_all_gas_there_is() -> None:
    machine = runner("London")
    assert refused(machine, call(), block_gas_left=99_999).have == 99_999
    result = machine.run(call(gas_limit=2**64 - 1), skip_block_gas=True)
    assert result["gas_used"] == 21_000


def test_the_coinbase_may_go_unpaid() -> None:
    machine = runner()
    machine.run(call(gas_price=3), no_coinbase_payment=True)
    assert machine.layer.account(COINBASE) is None
    assert machine.layer.balance(SENDER) == ETHER - 63_000


def set_code(*authorizations: Any, **fields: Any) -> Transaction:
    return call(**{"authorization_list": authorizations, "gas_limit": 500_000, **fields})


def grant(
    nonce: int = 0, address: bytes = CONTRACT, chain_id: int = 1, key: bytes = OTHER_KEY
) -> Any:
    return sign_authorization(key, chain_id=chain_id, address=address, nonce=nonce)


def test_an_authorization_makes_its_signer_run_the_code() -> None:
    machine = runner(layer=layer_of(contract={"code": SSTORE_1}))
    result = machine.run(set_code(grant(), to=OTHER))
    assert machine.layer.code(OTHER) == b"\xef\1\0" + CONTRACT
    assert machine.layer.nonce(OTHER) == 1
    assert machine.layer.storage(OTHER, 0) == 1
    # The delegate is warm. There is no refund, because the signer's account did not exist.
    assert result["gas_used"] == 21_000 + 25_000 + 3 + 3 + 2_100 + 20_000


def test_an_existing_account_is_cheaper_to_delegate() -> None:
    machine = runner(layer=layer_of(other={"balance": 1}))
    result = machine.run(set_code(grant()))
    assert result["gas_before_refund"] == 46_000
    assert result["gas_refunded"] == 46_000 // 5


def test_the_zero_address_ends_a_delegation() -> None:
    layer = layer_of(other={"nonce": 4, "code": b"\xef\1\0" + CONTRACT})
    machine = runner(layer=layer)
    machine.run(set_code(grant(4, bytes(20))))
    assert machine.layer.code(OTHER) == b""
    assert machine.layer.nonce(OTHER) == 5


@pytest.mark.parametrize(
    ("tuple_", "other"),
    [
        (grant(chain_id=2), {"balance": 1}),
        (grant(nonce=1), {"balance": 1}),
        (grant(chain_id=2**64 + 1), {"balance": 1}),
        (grant(), {"balance": 1, "code": b"\0"}),
        (grant()._replace(r=0), {"balance": 1}),
        (grant(nonce=2**64 - 1), {"nonce": 2**64 - 1}),
    ],
)
def test_a_void_authorization_changes_nothing_but_its_price(tuple_: Any, other: dict) -> None:
    machine = runner(layer=layer_of(other=other))
    before = machine.layer.account(OTHER)
    result = machine.run(set_code(tuple_))
    assert machine.layer.account(OTHER) == before
    assert result["gas_used"] == 46_000


def test_authorizations_are_processed_in_order_and_outlive_a_revert() -> None:
    machine = runner(layer=layer_of(contract={"code": REVERT}))
    tuples = [grant(0, b"\x22" * 20), grant(1, b"\x33" * 20, chain_id=0), grant(1, b"\x44" * 20)]
    result = machine.run(set_code(*tuples))
    assert result["status"] == REVERTED
    assert machine.layer.code(OTHER) == b"\xef\1\0" + b"\x33" * 20
    assert machine.layer.nonce(OTHER) == 2
    # The second authorization refunds, because the first has created the account.
    assert result["gas_refunded"] == 12_500


def test_a_sender_may_authorize_itself_with_its_raised_nonce() -> None:
    machine = runner()
    machine.run(set_code(grant(1, key=KEY)))
    assert machine.layer.code(SENDER) == b"\xef\1\0" + CONTRACT
    assert machine.layer.nonce(SENDER) == 2


def test_an_authority_is_warm_even_when_void() -> None:
    code = bytes.fromhex("73" + OTHER.hex() + "3150")
    machine = runner(layer=layer_of(contract={"code": code}, other={"nonce": 9}))
    assert machine.run(set_code(grant()))["gas_used"] == 46_000 + 3 + 100 + 2


BUSY = bytes.fromhex(
    "60005460010160005560205460015560606000a0"  # writes slots 0 and 1, emits a log
    + "6000600060006000600573"
    + OTHER.hex()
    + "5af1"  # calls OTHER with a value of 5 wei
    + "73"
    + "dd" * 20
    + "31"
    + "60025560006000fd"
)


@pytest.mark.parametrize("code", [BUSY, BUSY[:-5], BUSY[:20], b""])
@pytest.mark.parametrize("fork", ["Frontier", "Berlin", "Osaka"])
@pytest.mark.parametrize("stepped", [False, True])
def test_fetched_and_suspended_runs_give_the_same(code: bytes, fork: str, stepped: bool) -> None:
    layer = layer_of(
        contract={"code": code, "balance": 50, "storage": {0: 7, 32: 9}},
        other={"code": SSTORE_1 + LOG, "balance": 3},
    )
    tx_type = 0 if fork == "Frontier" else 1
    transaction = call(
        gas_limit=300_000,
        gas_price=3,
        value=4,
        type=tx_type,
        access_list=[(CONTRACT, [0, 5]), (b"\xee" * 20, [1])] if tx_type else None,
    )
    uninterrupted = runner(fork, layer)
    wanted = uninterrupted.run(transaction)
    for options in ({"remote": True}, {"suspend": True}, {"remote": True, "suspend": True}):
        other = runner(fork, layer, stepped=stepped, **options)
        assert other.run(transaction) == wanted
        assert other.layer.state_root() == uninterrupted.layer.state_root()
        assert (other.fetched > 0) == ("remote" in options)


def test_an_abandoned_transaction_leaves_no_trace() -> None:
    layer = layer_of(contract={"code": BUSY}, other={"balance": 1})
    machine = runner(layer=layer)
    after = machine.begin_and_abandon(set_code(grant(), value=7, gas_price=None, max_fee_per_gas=2))
    assert after.state_root() == layer.state_root()
