"""Tests titanoboa on fastevm, if titanoboa is installed (`make ecosystem`)."""

from io import StringIO
from typing import Any

import pytest

boa = pytest.importorskip("boa")

SOURCE = """
event Stored:
    who: indexed(address)
    amount: uint256

value: public(uint256)
by: public(HashMap[address, uint256])
K: immutable(uint256)

@deploy
def __init__():
    K = 7

@internal
def _plus(x: uint256) -> uint256:
    return x + K

@external
def store(amount: uint256):
    self.value = amount
    self.by[msg.sender] = amount
    assert amount != 13, "unlucky"
    log Stored(who=msg.sender, amount=amount)
"""
FACTORY = """
@external
def make(blueprint: address) -> address:
    return create_from_blueprint(blueprint)

@external
def proxy(target: address) -> address:
    return create_minimal_proxy_to(target)
"""


HALVER = """
@external
def half(x: uint256) -> uint256:
    found: Bytes[32] = raw_call(PLACE, abi_encode(x), max_outsize=32)
    return convert(found, uint256)
"""

TOKEN = """
balanceOf: public(HashMap[address, uint256])
totalSupply: public(uint256)
"""


@pytest.fixture
def env() -> Any:
    from fastevm.integrations.boa import Env

    with boa.swap_env(Env()):
        yield boa.env


@pytest.fixture
def contract(env: Any) -> Any:
    return boa.loads(SOURCE)


def test_calls_events_and_storage(contract: Any) -> None:
    contract.store(5)
    (event,) = contract.get_logs()
    assert event.amount == contract.value() == 5
    assert contract._storage.value.get() == 5
    assert list(contract._storage.by.get().values()) == [5]


def test_an_anchor_undoes(env: Any, contract: Any) -> None:
    contract.store(5)
    with env.anchor():
        contract.store(6)
        env.time_travel(seconds=100)
    assert contract.value() == 5


def test_a_revert_has_its_reason_its_line_and_the_storage_of_before(contract: Any) -> None:
    with boa.reverts("unlucky"):
        contract.store(13)
    with pytest.raises(boa.BoaError) as failed:
        contract.store(13)
    assert "assert amount != 13" in str(failed.value)
    assert "value=13" in str(failed.value)
    assert contract.value() == 0


def test_internal_functions_and_expressions(contract: Any) -> None:
    contract.store(5)
    assert contract.internal._plus(3) == 10
    assert contract.eval("self.value + 1") == 6


def test_contracts_that_contracts_make_are_known(env: Any, contract: Any) -> None:
    factory = boa.loads(FACTORY)
    blueprint = boa.loads_partial(SOURCE).deploy_as_blueprint()
    made = env.lookup_contract(factory.make(blueprint.address))
    made.store(8)
    assert made.value() == 8
    proxied = env.lookup_contract(factory.proxy(contract.address))
    proxied.store(9)
    assert (proxied.value(), contract.value()) == (9, 0)


def test_a_profile_has_gas_by_line(env: Any, contract: Any) -> None:
    from boa.profiling import get_line_profile_table
    from rich.console import Console

    env.enable_gas_profiling()
    contract.store(5)
    env.reset_gas_metering_behavior()
    shown = StringIO()
    Console(width=250, file=shown).print(get_line_profile_table())
    assert "self.value = amount" in shown.getvalue()


def test_the_steps_of_a_run_agree_with_its_gas(contract: Any) -> None:
    contract.store(5)
    run = contract._computation
    assert sum(run._gas_meter._gas_used_of.values()) == run.get_gas_used()
    assert len(run.code._trace) == len(run._run.steps)


def test_what_py_evm_alone_has_is_refused(env: Any, contract: Any) -> None:
    with pytest.raises(NotImplementedError):
        env.execute_code(contract.address, start_pc=5)


def test_moccasin_takes_it_for_a_network_without_stakes(env: Any) -> None:
    assert env.nickname == "pyevm"


def test_a_deal_finds_the_balances_of_a_token(env: Any) -> None:
    token = boa.loads(TOKEN)
    boa.deal(token, env.eoa, 7)
    assert (token.balanceOf(env.eoa), token.totalSupply()) == (7, 7)
    assert "balanceOf={}" in repr(token)  # the repr shows storage that the code has read
    with pytest.raises(ValueError, match="Function balanceOf not found"):
        boa.deal(boa.loads(SOURCE), env.eoa, 7)


def test_a_function_may_watch_an_opcode_and_not_take_its_place(
    contract: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from boa.vm import py_evm

    own, seen = boa.env.evm.vm.state.computation_class.opcodes[0x55], []

    def watch(computation: Any) -> None:
        seen.append((computation._stack.values[-1], computation._stack.values[-2]))
        own(computation)

    monkeypatch.setitem(py_evm._opcode_overrides, 0x55, watch)
    contract.store(5)
    assert (0, 5) in seen
    monkeypatch.setitem(py_evm._opcode_overrides, 0x55, lambda computation: None)
    with pytest.raises(NotImplementedError, match="not replace it"):
        contract.store(6)


def test_precompiles_in_python_run(env: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from boa.vm import py_evm
    from eth.exceptions import VMError

    monkeypatch.setattr(py_evm, "_precompiles", dict(py_evm._precompiles))

    def halved(computation: Any) -> Any:
        number = int.from_bytes(computation.msg.data_as_bytes, "big")
        computation.consume_gas(100, "halving")
        if number % 2:
            raise VMError("odd")
        computation.output = (number // 2).to_bytes(32, "big")
        return computation

    place = boa.env.generate_address()
    py_evm.register_raw_precompile(place, halved)
    contract = boa.loads(HALVER.replace("PLACE", place))
    assert contract.half(84) == 42
    with pytest.raises(boa.BoaError):
        contract.half(83)
    del py_evm._precompiles[place.canonical_address]
    assert contract.half(84) == 0  # without the precompile, the address has no code
