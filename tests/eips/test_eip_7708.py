"""EIP-7708: ETH transfers emit a log.

A transfer of ether between accounts emits a log from the system address.
"""

from fastevm import Transaction
from fastevm.core.primitives.keccak import keccak256

from .support import CONTRACT, OTHER, SENDER, before_and_after, calling, machine, run

BEFORE, AFTER = before_and_after(7708)
APRIL = "amsterdam-2026-04"
EMITTER = bytes.fromhex("ff" * 19 + "fe")
TRANSFER = keccak256(b"Transfer(address,address,uint256)")
BURN = keccak256(b"Burn(address,uint256)")


def moves(result):
    """Returns (sender, recipient, amount) of each transfer log. Fails if there are other logs."""
    assert {log.address for log in result.logs} <= {EMITTER}
    return [
        (log.topics[1][12:], log.topics[2][12:], int.from_bytes(log.data, "big"))
        for log in result.logs
        if log.topics[0] == TRANSFER
    ]


def paying(to, value, **fields):
    return Transaction.build(
        sender=SENDER, to=to, value=value, nonce=0, gas_limit=2_000_000, **fields
    )


def test_a_transaction_with_value_leaves_a_log():
    assert moves(machine(AFTER).execute(paying(OTHER, 7))) == [(SENDER, OTHER, 7)]
    assert machine(AFTER).execute(paying(OTHER, 0)).logs == ()
    assert machine(AFTER).execute(paying(SENDER, 7)).logs == ()
    assert machine(BEFORE).execute(paying(OTHER, 7)).logs == ()


def test_calls_creations_and_selfdestructs_leave_one():
    assert moves(run(AFTER, calling("CALL", OTHER, value=5), balance=9)) == [(CONTRACT, OTHER, 5)]
    ((sender, _, amount),) = moves(run(AFTER, "0 0 3 CREATE", balance=9))
    assert (sender, amount) == (CONTRACT, 3)
    found = run(AFTER, f"0x{OTHER.hex()} SELFDESTRUCT", balance=9)
    assert moves(found) == [(CONTRACT, OTHER, 9)]


def test_a_precompile_gets_a_log_too():
    identity = (4).to_bytes(20, "big")
    assert moves(run(AFTER, calling("CALL", identity, value=5), balance=9)) == [
        (CONTRACT, identity, 5)
    ]


def test_nothing_that_moves_nothing_leaves_a_log():
    for mnemonic in ("CALLCODE", "DELEGATECALL", "STATICCALL"):
        value = 5 if mnemonic == "CALLCODE" else 0
        assert run(AFTER, calling(mnemonic, OTHER, value=value), balance=9).logs == ()
    assert run(AFTER, calling("CALL", CONTRACT, value=5, gas=0), balance=9).logs == ()
    assert run(AFTER, calling("CALL", OTHER, value=10), balance=9).logs == ()


def test_the_logs_of_a_failed_frame_vanish():
    accounts = {OTHER: {"code": "0 0 REVERT"}}
    assert run(AFTER, calling("CALL", OTHER, value=5), balance=9, accounts=accounts).logs == ()


def test_only_the_devnet_of_april_logs_what_a_selfdestruct_burns():
    init = "30ff"  # ADDRESS SELFDESTRUCT
    code = f"0x{init} 0 MSTORE 2 30 7 CREATE"
    burned = run(APRIL, code, balance=9).logs[-1]
    assert (burned.address, burned.topics[0]) == (EMITTER, BURN)
    assert int.from_bytes(burned.data, "big") == 7
    assert [log.topics[0] for log in run(AFTER, code, balance=9).logs] == [TRANSFER]
