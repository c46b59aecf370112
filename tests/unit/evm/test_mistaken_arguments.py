"""Tests that wrong arguments raise errors that name the argument. Iterators are read once."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fastevm import EVM, Hooks, Layer, Transaction
from fastevm.core.primitives.bytes_like import address_of, bytes_of
from fastevm.evm.stateful import stateful

A, B = b"\xa1" * 20, b"\xb2" * 20
HUGE = 10**5000  # CPython refuses to convert this number to text
BLOB_HASH = bytes.fromhex("5f495f5260205ff3")  # returns BLOBHASH(0)


class Text(str):
    """A subclass of str, like addresses of other libraries."""


def test_text_of_other_classes_is_hex_text() -> None:
    evm = EVM()
    evm.set_code(Text("0x" + B.hex()), Text("0x" + BLOB_HASH.hex()))
    assert evm.code(B) == BLOB_HASH
    evm.set_storage(B, Text("0x" + "05" * 32), 1)
    assert evm.storage(B, "0x" + "05" * 32) == 1
    assert Transaction.build(data=Text("0x1234")).data == b"\x12\x34"


@pytest.mark.parametrize("text", ["\ud800", "0x\ud800", "0x" + "\ud800" * 40, "0x" + "é" * 40])
def test_text_that_is_not_ascii_is_not_hex(text: str) -> None:
    for read in (address_of, bytes_of):
        with pytest.raises(ValueError, match=r"^the key: ") as found:
            read(text, "the key")
        assert not isinstance(found.value, UnicodeError)


@pytest.mark.parametrize("terms", [{}, {"trace": "calls"}, {"timeout": 60}, {"access_list": []}])
def test_an_iterator_of_hashes_is_read_once(terms: dict[str, Any]) -> None:
    def hashes() -> Iterator[bytes]:
        yield b"\x01" * 32

    evm = EVM(state=Layer.of({B: {"code": BLOB_HASH}}))
    assert evm.call(B, blob_hashes=hashes(), **terms).output == b"\x01" * 32  # type: ignore[arg-type]
    created = evm.create(BLOB_HASH, blob_hashes=hashes(), **terms)  # type: ignore[arg-type]
    assert created.output == b"\x01" * 32


def test_an_iterator_of_opcodes_is_read_once() -> None:
    steps: list[Any] = []
    evm = EVM(state=Layer.of({B: {"code": BLOB_HASH}}))
    names: Any = iter(["BLOBHASH"])
    evm.hooks = Hooks(step=steps.append, opcodes=names)
    assert evm.hooks.opcodes == ("BLOBHASH",)
    evm.call(B)
    assert [step.op for step in steps] == ["BLOBHASH"]


def in_precompile(run: Callable[[Any], Any]) -> Callable[[EVM], Any]:
    def of(evm: EVM) -> Any:
        evm.precompiles[A] = stateful(lambda call: run(call) or b"")
        return evm.call(A, gas=100_000)

    return of


WRONG: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda evm: EVM(unchecked=5), TypeError, "unchecked: expected names of rules, found int"),
    (lambda evm: EVM(unchecked=[["nonce"]]), TypeError, "unchecked: expected .*, found list"),
    (lambda evm: EVM(unchecked=b"nonce"), TypeError, "unchecked: expected .*, found int"),
    (lambda evm: EVM(code_size_limit=HUGE), ValueError, "invalid code size limit a huge number"),
    (lambda evm: Hooks(opcodes=5), TypeError, "opcodes must be a sequence of mnemonics, not a int"),  # type: ignore[arg-type]
    (lambda evm: Hooks(opcodes=b"\x01"), TypeError, "opcodes: expected mnemonics, found int"),  # type: ignore[arg-type]
    (lambda evm: evm.revert(HUGE), ValueError, "there is no snapshot a huge number"),
    (lambda evm: evm.call(A, trace=[["calls"]]), TypeError, "trace: expected names, found list"),
    (lambda evm: evm.transact(A, type="2"), TypeError, "type is an int, not str"),
    (lambda evm: evm.transact(A, type=HUGE), ValueError, "type: expected .*, found a huge number"),
    (lambda evm: evm.set_storage(A, HUGE, 1), OverflowError, r"storage\[a huge number\]: slot"),
    (lambda evm: Layer.of({A: {"nonce": None}}), TypeError, "nonce is an int, not NoneType"),
    (lambda evm: evm.state.without_accounts(5), TypeError, "addresses: expected a list, found int"),
    (lambda evm: evm.state.proof(A, "0x1"), TypeError, "slots: expected a list, found str"),
    (lambda evm: Transaction.build(to=""), ValueError, "to: hex text begins with 0x, found ''"),
    (lambda evm: Transaction.build(value=""), TypeError, "is an int, not str"),
    (
        lambda evm: Transaction.build().sign(b"\x07" * 32, chain_id=1.5),  # type: ignore[arg-type]
        TypeError,
        "chain_id is an int, not float",
    ),
    (in_precompile(lambda call: call.set_balance(A, 1.5)), TypeError, "balance is an int, not fl"),
    (in_precompile(lambda call: call.set_nonce(A, 1.5)), TypeError, "nonce is an int, not float"),
    (in_precompile(lambda call: call.charge(1.5)), TypeError, "gas is an int, not float"),
]


@pytest.mark.parametrize(("run", "kind", "text"), WRONG)
def test_a_mistaken_argument_is_named(
    run: Callable[[Any], Any], kind: type[Exception], text: str
) -> None:
    evm = EVM()
    before = evm.state
    with pytest.raises(kind, match=text):
        run(evm)
    assert evm.state is before
