"""Runs the 101 cases that eth-tester has for backends, and further tests."""

from importlib.util import find_spec
from typing import Any

import pytest
from eth_tester import EthereumTester
from eth_tester.backends import get_chain_backend
from eth_tester.exceptions import TransactionFailed, ValidationError
from eth_tester.utils.backend_testing import BaseTestBackendDirect
from eth_utils.exceptions import ValidationError as UtilsValidationError

from fastevm.core.crypto.secp256k1 import public_key_address
from fastevm.core.execution.transaction.sidecar import BlobSidecar, encode_pooled
from fastevm.core.execution.transaction.transaction import Transaction, sign_authorization
from fastevm.integrations.eth_tester import Backend
from fastevm.integrations.eth_tester.tester_chain import CHAIN_ID

MNEMONIC = "test test test test test test test test test test test junk"
COUNTER = "6000546001018060005560005260206000f3"
NEEDS_PY_EVM = "test_send_raw_transaction_invalid_rlp_transaction"


class TestOwnCases(BaseTestBackendDirect):  # type: ignore[misc]
    """Runs the cases that eth-tester publishes for backends."""

    @pytest.fixture
    def eth_tester(
        self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> EthereumTester:
        if request.node.name == NEEDS_PY_EVM and find_spec("eth") is None:
            pytest.skip("expects an exception of py-evm, which is not installed")
        monkeypatch.setenv(
            "ETHEREUM_TESTER_CHAIN_BACKEND", "fastevm.integrations.eth_tester.Backend"
        )
        return EthereumTester(get_chain_backend())


@pytest.fixture
def backend() -> Backend:
    return Backend()


def sent(backend: Backend, **fields: Any) -> bytes:
    sender = backend.get_accounts()[0]
    return backend.send_transaction({"from": sender, "gas": 200_000, **fields})


def test_the_default_accounts_are_those_of_eth_tester(backend: Backend) -> None:
    first = backend.get_accounts()[0]
    assert first.hex() == "7e5f4552091a69125d5dfcb7b8c2659029395bdf"
    assert len(backend.get_accounts()) == 10 and backend.get_balance(first) == 10**24


def test_accounts_may_come_from_a_mnemonic() -> None:
    pytest.importorskip("eth_account")
    backend = Backend(mnemonic=MNEMONIC, hd_path="m/44'/60'/0'/0")
    assert backend.get_accounts()[0].hex() == "f39fd6e51aad88f6f4ce6ab8827279cfffb92266"


def test_a_genesis_has_the_given_accounts_header_and_rules() -> None:
    state = {b"\7" * 20: {"balance": 5, "code": bytes.fromhex(COUNTER), "storage": {0: 41}}}
    backend = Backend({"gas_limit": 10_000_000, "timestamp": 77}, state, fork="london")
    block = backend.get_block_by_number(0)
    assert (block["gas_limit"], block["timestamp"]) == (10_000_000, 77)
    assert "withdrawals" not in block and "base_fee_per_gas" in block
    call = {"from": b"\1" * 20, "to": b"\7" * 20, "gas": 100_000}
    assert int.from_bytes(backend.call(call), "big") == 42
    assert len(backend.get_accounts()) == 1


def test_what_waits_is_seen_by_pending_alone(backend: Backend) -> None:
    tx_hash = sent(backend, to=b"\5" * 20, value=3)
    assert backend.get_balance(b"\5" * 20, "pending") == 3
    assert backend.get_balance(b"\5" * 20) == 0
    assert backend.get_transaction_receipt(tx_hash)["block_number"] is None
    (block_hash,) = backend.mine_blocks()
    assert backend.get_balance(b"\5" * 20) == 3
    block = backend.get_block_by_hash(block_hash)
    assert block["transactions"][0]["hash"] == tx_hash and block["gas_used"] == 21_000


def test_a_coinbase_is_paid_for_what_waited(backend: Backend) -> None:
    sent(backend, to=b"\5" * 20, max_fee_per_gas=10**10, max_priority_fee_per_gas=7)
    backend.mine_blocks(coinbase=b"\6" * 20)
    assert backend.get_balance(b"\6" * 20) == 7 * 21_000


def test_going_back_forgets_blocks_and_what_waits(backend: Backend) -> None:
    snapshot = backend.take_snapshot()
    tx_hash = sent(backend, to=b"\5" * 20, value=3)
    backend.mine_blocks(2)
    sent(backend, to=b"\5" * 20, value=4)
    backend.revert_to_snapshot(snapshot)
    assert backend.get_balance(b"\5" * 20, "pending") == 0 and len(backend.chain.blocks) == 1
    assert backend.chain.locate(tx_hash) is None


def test_a_block_after_time_travel_has_the_time(backend: Backend) -> None:
    wanted = backend.get_block_by_number("pending")["timestamp"] + 1000
    backend.time_travel(wanted)
    assert backend.get_block_by_number("pending")["timestamp"] == wanted


def test_withdrawals_are_paid(backend: Backend) -> None:
    item = {"index": 0, "validator_index": 1, "address": "0x" + "09" * 20, "amount": 2}
    backend.apply_withdrawals([item])
    assert backend.get_balance(b"\x09" * 20) == 2 * 10**9
    assert backend.get_block_by_number("latest")["withdrawals"][0]["amount"] == 2
    with pytest.raises(ValidationError):
        Backend(fork="london").apply_withdrawals([item])


def test_a_raw_and_a_signed_transaction_are_executed(backend: Backend) -> None:
    sender = backend.get_accounts()[0]
    terms = {"nonce": 0, "gas_limit": 21_000, "to": b"\5" * 20, "value": 3}
    built = Transaction.build(chain_id=CHAIN_ID, max_fee_per_gas=10**10, type=2, **terms)
    raw = built.sign(backend.keys[sender], chain_id=CHAIN_ID).raw
    backend.send_raw_transaction(raw)
    backend.mine_blocks()
    with pytest.raises(ValidationError):
        backend.send_raw_transaction(raw)
    second = Transaction.build(gas_price=10**10, **(terms | {"nonce": 1}))
    signed = second.sign(backend.keys[sender])
    fields = {name: getattr(signed, name) for name in ("nonce", "gas_price", "to", "value")}
    signature = {"v": signed.v, "r": signed.r, "s": signed.s, "gas": 21_000, "data": b""}
    assert backend.send_signed_transaction({"from": sender, **fields, **signature}) == signed.hash
    assert backend.get_balance(b"\5" * 20, "pending") == 6


def test_an_unknown_sender_and_bad_bytes_are_refused(backend: Backend) -> None:
    with pytest.raises(ValidationError):
        backend.send_transaction({"from": b"\1" * 20, "gas": 21_000})
    for raw in (b"\x12\x34", b"\xff\xff"):
        with pytest.raises(Exception):  # noqa: B017 (of another library where that is there)
            backend.send_raw_transaction(raw)


def test_a_failing_call_tells_its_reason(backend: Backend) -> None:
    code = {"nothing": "5f5ffd", "panic": "634e487b715f526004601cfd", "halt": "fe"}
    reasons = {}
    for number, (name, runtime) in enumerate(code.items(), 1):
        address = bytes([number]) * 20
        state = {address: {"code": bytes.fromhex(runtime)}}
        with pytest.raises(TransactionFailed) as caught:
            Backend(genesis_state=state).call({"from": b"\1" * 20, "to": address, "gas": 50_000})
        reasons[name] = str(caught.value)
    assert reasons == {"nothing": "b''", "panic": "b'NH{q'", "halt": "invalid opcode: INVALID"}


def test_the_keys_are_those_of_the_accounts(backend: Backend) -> None:
    addresses = [key.public_key.to_canonical_address() for key in backend.account_keys]
    assert tuple(addresses) == backend.get_accounts()


def test_a_refusal_is_what_programs_of_both_libraries_expect(backend: Backend) -> None:
    for kind in (ValidationError, UtilsValidationError):
        with pytest.raises(kind, match="less than block base fee"):
            sent(backend, to=b"\7" * 20, gas_price=0)


def test_a_call_and_an_estimate_need_not_pay_for_a_block(backend: Backend) -> None:
    first = backend.get_accounts()[0]
    for fees in ({"gas_price": 10}, {"max_priority_fee_per_gas": 100}):
        wanted = {"from": first, "to": b"\7" * 20, **fees}
        assert backend.estimate_gas(wanted) == 21_000
        assert backend.call(wanted) == b""


def test_a_raw_transaction_may_come_with_its_blobs(backend: Backend) -> None:
    key = backend.account_keys[0].to_bytes()
    built = Transaction.build(
        type=3, chain_id=CHAIN_ID, to=b"\7" * 20, gas_limit=21_000, max_fee_per_gas=10**10,
        max_fee_per_blob_gas=10**10, blob_versioned_hashes=[b"\1" + bytes(31)],
    )  # fmt: skip
    sidecar = BlobSidecar(0, (bytes(131072),), (bytes(48),), (bytes(48),))
    raw = encode_pooled(built.sign(key, chain_id=CHAIN_ID), sidecar)
    sent_hash = backend.send_raw_transaction(raw)
    assert backend.get_transaction_by_hash(sent_hash)["blob_versioned_hashes"]


def test_calls_and_estimates_apply_authorizations(backend: Backend) -> None:
    key = b"\x07" * 32
    signed = sign_authorization(key, chain_id=CHAIN_ID, address=b"\xd0" * 20, nonce=0)
    listed = [signed._asdict()]
    sender, target = backend.get_accounts()[0], public_key_address(key)
    call = {"from": sender, "to": target, "gas": 200_000, "data": b"", "value": 0}
    with_list = {**call, "authorization_list": listed}
    assert backend.estimate_gas(with_list) - backend.estimate_gas(call) >= 12_500
    created = backend.get_transaction_receipt(
        sent(backend, data=bytes.fromhex("6012600a5f3960125ff3") + bytes.fromhex(COUNTER))
    )
    backend.mine_blocks()
    delegate = sign_authorization(
        key, chain_id=CHAIN_ID, address=created["contract_address"], nonce=0
    )
    with_code = {**call, "authorization_list": [delegate._asdict()]}
    assert backend.call(call) == b""
    assert len(backend.call(with_code)) == 32


def test_calls_and_estimates_that_are_refused_raise_validation_errors(backend: Backend) -> None:
    sender = backend.get_accounts()[0]
    call = {"from": sender, "to": b"\xb0" * 20, "value": 10**30, "gas": 100_000, "data": b""}
    for run in (backend.call, backend.estimate_gas):
        with pytest.raises(ValidationError):
            run({**call, "max_fee_per_gas": 10**9, "max_priority_fee_per_gas": 2 * 10**9})
