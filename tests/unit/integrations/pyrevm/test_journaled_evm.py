"""Tests the parts of pyrevm's interface that the comparison with pyrevm does not cover."""

import copy
import json
import pickle

import pytest

from fastevm.errors import UnknownForkError
from fastevm.integrations.pyrevm import EVM, AccountInfo, BlockEnv, CfgEnv, Env, TxEnv

A, B, C = ("0x" + f"{n:02x}" * 20 for n in (0xA1, 0xB2, 0xC3))
ADD = bytes.fromhex("6001600201" + "00")


def test_addresses_are_strings_of_twenty_bytes() -> None:
    evm = EVM()
    for address in ("0x12", "0x" + "zz" * 20, bytes(20), None):
        with pytest.raises(TypeError):
            evm.get_balance(address)  # type: ignore[arg-type]
    evm.set_balance(A[2:].upper(), 7)
    assert evm.get_balance(A) == 7


def test_numbers_that_do_not_fit_are_refused() -> None:
    evm = EVM()
    for value in (-1, 2**256):
        with pytest.raises(OverflowError):
            evm.set_balance(A, value)
        with pytest.raises(OverflowError):
            evm.message_call(A, B, value=value)
    with pytest.raises(OverflowError):
        evm.message_call(A, B, gas=2**64)


def test_a_fork_is_any_that_is_known() -> None:
    for name in ("london", "CANCUN", "osaka", "LATEST", "latest"):
        assert EVM(spec_id=name).message_call(A, B) == b""
    with pytest.raises(UnknownForkError):
        EVM(spec_id="BANANA")


def test_an_access_list_is_paid_for_and_warms() -> None:
    used = {}
    for listed in (None, [(B, [1])], [(B, [])], [(B, [2, 3]), (A, [])]):
        evm = EVM(spec_id="cancun")
        evm.insert_account_info(B, AccountInfo(code=bytes.fromhex("60015400")))  # SLOAD of slot 1
        evm.set_tx_env(TxEnv(access_list=listed))
        evm.message_call(A, B)
        assert evm.result is not None
        used[str(listed)] = evm.result.gas_used
    cold = 21_000 + 3 + 2_100
    assert list(used.values()) == [
        cold, 21_003 + 2_400 + 1_900 + 100, cold + 2_400, cold + 2 * (2_400 + 1_900)
    ]  # fmt: skip


def test_parts_of_the_environment_are_copies() -> None:
    evm = EVM(env=Env(CfgEnv(chain_id=5), BlockEnv(number=9)))
    block = evm.env.block
    block.number = 10
    assert evm.env.block.number == 9
    evm.set_block_env(block)
    block.number = 11
    assert evm.env.block.number == 10 and evm.env.cfg.chain_id == 5
    assert "number=10" in repr(evm.env)


def test_going_back_takes_back_every_kind_of_change() -> None:
    evm = EVM()
    checkpoint = evm.snapshot()
    later = evm.snapshot()
    evm.set_balance(A, 5)
    evm.insert_account_info(B, AccountInfo(balance=3, nonce=2, code=b"\1"))
    assert evm.insert_account_storage(C, 1, 2) == 0
    assert evm.insert_account_storage(C, 1, 3) == 2
    assert evm.checkpoint_ids == {checkpoint, later} and evm.journal_depth == 2
    assert set(evm.db_accounts) >= set(evm.journal_state) - {"0x" + "00" * 20}
    evm.revert(checkpoint)
    assert (evm.get_balance(A), evm.basic(B).nonce, evm.storage(C, 1)) == (0, 0, 0)
    with pytest.raises(OverflowError):
        evm.revert(later)


def test_a_commit_forgets_the_newest_checkpoint() -> None:
    evm = EVM()
    outer, inner = evm.snapshot(), evm.snapshot()
    evm.set_balance(A, 5)
    evm.commit()
    with pytest.raises(KeyError):
        evm.revert(inner)
    evm.revert(outer)
    assert evm.get_balance(A) == 0


def test_tracing_prints_a_line_for_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    evm = EVM(tracing=True, spec_id="shanghai")
    evm.insert_account_info(C, AccountInfo(code=ADD))
    evm.message_call(A, C, gas=50_000)
    *steps, summary = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert [step["opName"] for step in steps] == ["PUSH1", "PUSH1", "ADD", "STOP"]
    assert steps[0]["gas"] == hex(29_000) and steps[2]["stack"] == ["0x1", "0x2"]
    assert (summary["pass"], summary["gasUsed"], summary["fork"]) == (True, hex(21_009), "Shanghai")
    evm.tracing = False
    evm.message_call(A, C)
    assert capsys.readouterr().out == ""


def test_a_deployment_may_be_traced(capsys: pytest.CaptureFixture[str]) -> None:
    evm = EVM(tracing=True)
    evm.deploy(A, ADD)
    assert len(capsys.readouterr().out.splitlines()) == 5


class Text(str):
    """A subclass of str, like addresses of other libraries."""


def test_addresses_may_be_a_subclass_of_str() -> None:
    evm = EVM()
    evm.insert_account_info(B, AccountInfo(code=bytes.fromhex("335f5260205ff3")))
    assert evm.message_call(Text(A), Text(B))[12:] == bytes.fromhex(A[2:])


def test_a_message_pays_for_its_data_and_is_refused_without_enough_gas() -> None:
    evm = EVM()
    evm.message_call(A, B, b"\x00\x01" * 3)
    assert evm.result is not None and evm.result.gas_used == 21_000 + 3 * 4 + 3 * 16
    with pytest.raises(RuntimeError, match="Initial gas spend is 21060 but gas limit is 21059"):
        evm.message_call(A, B, b"\x00\x01" * 3, gas=21_059)
    assert evm.result is None
    with pytest.raises(RuntimeError, match="CallerGasLimitMoreThanBlock"):
        EVM(gas_limit=50_000).message_call(A, B, gas=50_001)


def test_a_sender_has_no_code_and_can_pay() -> None:
    evm = EVM()
    with pytest.raises(RuntimeError, match=r"LackOfFundForMaxFee \{ fee: 42001, balance: 5 \}"):
        evm.set_balance(A, 5)
        evm.message_call(A, B, value=1, gas=21_000, gas_price=2)
    evm.set_balance(A, 42_001)
    evm.message_call(A, B, value=1, gas=21_000, gas_price=2)
    assert (evm.get_balance(A), evm.get_balance(B)) == (42_000, 1)  # gas costs nothing
    evm.insert_account_info(A, AccountInfo(code=ADD))
    with pytest.raises(RuntimeError, match="RejectCallerWithCode"):
        evm.message_call(A, B)


def test_arguments_that_are_none_leave_the_last_result() -> None:
    evm = EVM()
    evm.message_call(A, B)
    last = evm.result
    for terms in ({"gas": -1}, {"gas": 2**64}, {"value": 2**256}, {"gas_price": -1}):
        with pytest.raises(OverflowError, match="unsigned bits"):
            evm.message_call(A, B, **terms)
    for terms in ({"gas": 1.5}, {"value": "1"}, {"calldata": "0x"}):
        with pytest.raises(TypeError):
            evm.message_call(A, B, **terms)  # type: ignore[arg-type]
    assert evm.result == last


def test_a_static_message_changes_nothing_and_a_halt_has_its_reason() -> None:
    evm = EVM()
    evm.insert_account_info(B, AccountInfo(code=bytes.fromhex("60015f55")))
    with pytest.raises(RuntimeError, match="StateChangeDuringStaticCall"):
        evm.message_call(A, B, is_static=True)
    evm.message_call(A, B)
    assert evm.storage(B, 0) == 1
    evm.insert_account_info(C, AccountInfo(code=bytes.fromhex("5f5ffd")))
    with pytest.raises(RuntimeError, match=r"Revert \{ gas_used: 21004, output: 0x \}"):
        evm.message_call(A, C)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("", "Stop"),
        ("00", "Stop"),
        ("6001", "Stop"),
        ("5f5ff3", "Return"),
        ("60015ff3", "Return"),
        ("5fff", "SelfDestruct"),
    ],
)
@pytest.mark.parametrize("static", [False, True])
def test_a_success_has_the_reason_of_revm(code: str, reason: str, static: bool) -> None:
    if static and reason == "SelfDestruct":
        return
    evm = EVM()
    evm.insert_account_info(C, AccountInfo(code=bytes.fromhex(code)))
    evm.message_call(A, C, is_static=static)
    assert evm.result.reason == reason


def test_a_precompile_and_a_deployment_return() -> None:
    evm = EVM()
    evm.message_call(A, "0x" + "00" * 19 + "01")  # ecrecover without input has no output
    assert evm.result.reason == "Return"
    evm.deploy(A, b"\x00")
    assert evm.result.reason == "Return"


def test_a_message_shows_the_block_without_its_fee_until_another_is_set() -> None:
    block = BlockEnv(number=7, basefee=9)
    evm = EVM(Env(block=block), gas_limit=50_000)
    assert evm.env.block.basefee == 9
    evm.message_call(A, B, b"\1")
    assert (evm.env.block.basefee, evm.env.block.gas_limit) == (0, 50_000)
    assert (evm.env.tx.caller.lower(), evm.env.tx.data) == (A, b"\1")  # type: ignore[union-attr]
    evm.set_block_env(block)
    assert evm.env.block.basefee == 9


def test_an_evm_without_its_constructor_raises() -> None:
    evm = EVM.__new__(EVM)
    with pytest.raises(TypeError):
        evm.message_call(A, B)
    with pytest.raises(TypeError):
        evm.deploy(A, b"")


def test_nothing_is_copied_or_pickled() -> None:
    evm = EVM()
    evm.message_call(A, B)
    parts = (evm._rules, evm._last, evm._last.sent)  # type: ignore[union-attr]
    for made, words in (
        (evm, "cannot be copied or pickled"),
        *((part, "^cannot pickle '") for part in parts),
    ):
        with pytest.raises(TypeError, match=words):
            copy.copy(made)
        with pytest.raises(TypeError, match=words):
            pickle.dumps(made)
        assert not hasattr(type(made), "__setstate_cython__")
