"""Tests the class EVM: calls without effects, transactions, snapshots, and clear errors."""

import threading

import pytest

from fastevm import EVM, Transaction
from fastevm.errors import InvalidTransaction, UnknownForkError

ALICE = b"\xa1" * 20
BOB = b"\xb0" * 20
CONTRACT = b"\xc0" * 20

# SSTORE(0, SLOAD(0) + 1), LOG1 of the new value with topic 7, RETURN of it
COUNTER = bytes.fromhex("5f54600101805f555f52600760205fa160205ff3")
REVERT_WITH_REASON = bytes.fromhex(
    # PUSH the ABI encoding of Error("no") into memory and revert with it
    "7f08c379a0" + "00" * 28 + "5f52"
    "6020600452" "6002602452" "7f6e6f" + "00" * 30 + "604452" "60645ffd"
)  # fmt: skip


@pytest.fixture
def evm() -> EVM:
    machine = EVM("osaka")
    machine.set_account(ALICE, balance=10**18)
    machine.set_account(CONTRACT, code=COUNTER)
    return machine


def test_a_call_gives_output_and_logs_and_changes_nothing(evm: EVM) -> None:
    before = evm.state
    result = evm.call(CONTRACT, sender=ALICE)
    assert result.success
    assert result.error is None
    assert int.from_bytes(result.output, "big") == 1
    assert [log.address for log in result.logs] == [CONTRACT]
    assert result.logs[0].topics == ((7).to_bytes(32, "big"),)
    assert result.logs[0].data == (1).to_bytes(32, "big")
    assert evm.state is before
    assert evm.storage(CONTRACT, 0) == 0


def test_a_transaction_charges_moves_the_nonce_and_keeps_its_changes(evm: EVM) -> None:
    result = evm.transact(CONTRACT, sender=ALICE, gas=100_000, gas_price=3)
    assert result.success
    assert evm.storage(CONTRACT, 0) == 1
    assert evm.nonce(ALICE) == 1
    assert evm.balance(ALICE) == 10**18 - 3 * result.gas_used
    assert evm.transact(CONTRACT, sender=ALICE).success
    assert evm.storage(CONTRACT, 0) == 2


def test_a_deployment_returns_the_address_of_the_code(evm: EVM) -> None:
    size = len(COUNTER)
    # CODECOPY the rest, RETURN it
    prologue = bytes.fromhex(f"60{size:02x}600a5f3960{size:02x}5ff3")
    initcode = prologue + COUNTER
    result = evm.deploy(initcode, sender=ALICE)
    assert result.success, result.error
    assert result.created_address is not None
    assert evm.code(result.created_address) == result.output == COUNTER
    assert evm.nonce(result.created_address) == 1


def test_a_transfer_moves_ether(evm: EVM) -> None:
    result = evm.transact(BOB, sender=ALICE, value=5, gas=21_000)
    assert result.success
    assert result.gas_used == 21_000
    assert evm.balance(BOB) == 5


def test_a_revert_is_a_result_with_its_reason(evm: EVM) -> None:
    evm.set_account(BOB, code=REVERT_WITH_REASON)
    result = evm.call(BOB)
    assert not result.success
    assert result.error == "execution reverted: no"
    assert result.output[:4].hex() == "08c379a0"
    assert result.logs == ()


def test_a_halt_is_a_result_without_output(evm: EVM) -> None:
    evm.set_account(BOB, code=b"\xfe")
    result = evm.call(BOB, gas=1_000)
    assert not result.success
    assert result.gas_used == 1_000
    assert result.output == b""
    assert result.error


def test_a_snapshot_brings_everything_back(evm: EVM) -> None:
    snapshot = evm.snapshot()
    evm.transact(CONTRACT, sender=ALICE)
    inner = evm.snapshot()
    evm.transact(CONTRACT, sender=ALICE)
    evm.revert(inner)
    assert evm.storage(CONTRACT, 0) == 1
    evm.revert(snapshot)
    assert evm.storage(CONTRACT, 0) == 0
    assert evm.nonce(ALICE) == 0
    with pytest.raises(ValueError, match="no snapshot"):
        evm.revert(inner)


def test_a_snapshot_is_a_context_manager(evm: EVM) -> None:
    with evm.snapshot():
        evm.transact(CONTRACT, sender=ALICE)
        assert evm.storage(CONTRACT, 0) == 1
    assert evm.storage(CONTRACT, 0) == 0


def test_a_refused_transaction_changes_nothing(evm: EVM) -> None:
    before = evm.state
    for fields, code in [
        ({"value": 10**19}, "insufficient_funds"),
        ({"gas": 20_000}, "intrinsic_gas"),
        ({"nonce": 1}, "nonce_too_high"),
        ({"gas": 2**24 + 1}, "gas_limit_too_high"),
    ]:
        with pytest.raises(InvalidTransaction) as refused:
            evm.transact(BOB, sender=ALICE, **fields)
        assert refused.value.code == code
    assert evm.state is before


def test_a_signed_transaction_runs_as_its_signer(evm: EVM) -> None:
    key = b"\x01" * 32
    transaction = Transaction.build(
        chain_id=1, nonce=0, gas_limit=21_000, max_fee_per_gas=1, to=BOB, value=1
    ).sign(key)
    assert transaction.sender is not None
    evm.set_account(transaction.sender, balance=10**6)
    assert evm.execute(Transaction.decode(transaction.raw)).success
    assert evm.nonce(transaction.sender) == 1


def test_the_block_environment_is_what_code_sees(evm: EVM) -> None:
    opcodes = {"number": 0x43, "timestamp": 0x42, "gas_limit": 0x45, "base_fee": 0x48,
               "prev_randao": 0x44, "blob_base_fee": 0x4A, "chain_id": 0x46}  # fmt: skip
    for value, (name, opcode) in enumerate(opcodes.items(), 7):
        evm.set_block(**{name: value})
        evm.set_account(BOB, code=bytes([opcode]) + bytes.fromhex("5f5260205ff3"))
        assert int.from_bytes(evm.call(BOB).output, "big") == value, name
    parent = b"\x99" * 32
    evm.set_block(number=10, block_hashes=[parent])
    evm.set_account(BOB, code=bytes.fromhex("6009405f5260205ff3"))
    assert evm.call(BOB).output == parent


def test_addresses_and_data_may_be_hex(evm: EVM) -> None:
    assert evm.balance("0x" + ALICE.hex()) == 10**18
    assert evm.call("0x" + CONTRACT.hex(), "0x", sender="0x" + ALICE.hex()).success


@pytest.mark.parametrize(
    ("address", "error"),
    [(b"short", ValueError), ("0x12", ValueError), ("a1" * 20, ValueError), (5, TypeError)],
)
def test_what_is_no_address_is_refused(evm: EVM, address: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        evm.call(address)  # type: ignore[arg-type]


def test_an_unknown_fork_gets_a_suggestion() -> None:
    with pytest.raises(UnknownForkError, match=r"(?i)london"):
        EVM("lodnon")


def test_the_environment_refuses_names_it_does_not_know(evm: EVM) -> None:
    with pytest.raises(TypeError, match="gas_limits"):
        evm.set_block(gas_limits=3)  # type: ignore[call-arg]


def test_forks_differ(evm: EVM) -> None:
    push0 = bytes.fromhex("5f5f5ff3")
    for fork, success in (("london", False), ("shanghai", True)):
        machine = EVM(fork, state=evm.state)
        machine.set_account(BOB, code=push0)
        assert machine.call(BOB).success is success


def test_one_machine_serves_one_thread_at_a_time(evm: EVM) -> None:
    evm.set_account(BOB, code=bytes.fromhex("5b5f56"))  # loops until it runs out of gas
    outcomes: list[object] = []

    def run() -> None:
        try:
            outcomes.append(evm.call(BOB, gas=200_000_000).error)
        except RuntimeError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "out of gas" in outcomes
    assert all(o == "out of gas" or isinstance(o, RuntimeError) for o in outcomes)
    assert evm.call(CONTRACT).success
