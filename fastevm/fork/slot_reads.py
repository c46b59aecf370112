"""The methods to read many slots, best first.

Each method is compared with single reads before it is used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from fastevm.core.primitives.hex import hex_word
from fastevm.fork.capabilities import Capability
from fastevm.fork.collector import BadValue, word_of
from fastevm.fork.endpoints import NOT_ANSWERED
from fastevm.fork.reader_contract import (
    CHANGED_BY_BLOCKS,
    SLOTS_OF_A_CALL,
    SLOTS_OF_A_REQUEST,
    reader_call,
    reader_override,
    values_in,
)
from fastevm.fork.state_batch import StateBatch
from fastevm.rpc_client.messages import RpcRefusal

Slot = tuple[bytes, int]
SlotGroups = Mapping[bytes, Sequence[int]]
Take = Callable[[SlotGroups, Any], None]

STORAGE_VALUES_LIMIT: Final = 1_024  # slots per eth_getStorageValues
MIN_FOR_READER: Final = 32  # with fewer slots in total, each is read by its own call in a batch
# minimum number of slots of one contract for which a reader call is used
MIN_FOR_ONE_READER: Final = 8
SAMPLE: Final = 8  # slots that an untried method reads for comparison with single reads
LADDER: Final = (Capability.STORAGE_VALUES, Capability.SIMULATE_READER, Capability.CALL_READER)


def read_slots(batch: StateBatch, slots: Iterable[Slot]) -> None:
    """Adds reads of all slots.

    Also tries methods that were not tried yet, with a few of the slots.
    """
    wanted = sorted(slots)
    if not wanted:
        return
    capabilities = batch.capabilities
    many = len(wanted) >= MIN_FOR_READER
    if capabilities.get(Capability.STORAGE_VALUES):
        for group in _grouped(wanted, STORAGE_VALUES_LIMIT):
            _storage_values(batch, group, _taker(batch, Capability.STORAGE_VALUES))
        return
    rest = wanted
    if many and capabilities.get(Capability.SIMULATE_READER):
        rest = [slot for slot in wanted if slot[0] in CHANGED_BY_BLOCKS]
        readable = [slot for slot in wanted if slot[0] not in CHANGED_BY_BLOCKS]
        for group in _grouped(readable, SLOTS_OF_A_REQUEST):
            _simulate_reader(batch, group, _taker(batch, Capability.SIMULATE_READER))
    elif many and capabilities.get(Capability.CALL_READER):
        rest = _read_by_calls(batch, wanted)
    for address, slot in rest:
        _single(batch, address, slot)
    _try_methods(batch, rest, many)


def _try_methods(batch: StateBatch, read: Sequence[Slot], many: bool) -> None:
    """Tries the untried methods; the next read uses the best of them."""
    sample = _grouped(read[:SAMPLE], SAMPLE)
    if not sample:
        return
    if batch.capabilities.get(Capability.STORAGE_VALUES) is None:
        _storage_values(batch, sample[0], _comparer(batch, Capability.STORAGE_VALUES))
    elif many and not any(batch.capabilities.get(item) for item in LADDER):
        steady = [slot for slot in read if slot[0] not in CHANGED_BY_BLOCKS]
        for group in _grouped(steady[:SAMPLE], SAMPLE):
            if batch.capabilities.get(Capability.SIMULATE_READER) is None:
                _simulate_reader(batch, group, _comparer(batch, Capability.SIMULATE_READER))
            elif batch.capabilities.get(Capability.CALL_READER) is None:
                first = dict(islice(group.items(), 1))
                _call_reader(batch, first, _comparer(batch, Capability.CALL_READER))


def _single(batch: StateBatch, address: bytes, slot: int) -> None:
    def take(answer: Any) -> None:
        batch.collector.slot(address, slot, word_of(answer, "slot"))

    params = ("0x" + address.hex(), hex_word(slot), batch.block_parameter)
    batch.add("eth_getStorageAt", params, take)


def _storage_values(batch: StateBatch, group: SlotGroups, take: Take) -> None:
    asked = {"0x" + address.hex(): [*map(hex_word, slots)] for address, slots in group.items()}

    def read(answer: Any) -> None:
        take(group, _values_by_address(answer, group))

    params = (asked, batch.block_parameter)
    batch.add("eth_getStorageValues", params, read, optional=True)


def _simulate_reader(batch: StateBatch, group: SlotGroups, take: Take) -> None:
    pieces = [(item, list(part)) for item, slots in group.items() for part in _pieces(slots)]
    block = {
        "stateOverrides": reader_override([*group]),
        "calls": [reader_call(address, slots, batch.block.header) for address, slots in pieces],
    }

    def read(answer: Any) -> None:
        if isinstance(answer, RpcRefusal):
            take(group, answer)
            return
        values: dict[bytes, list[int]] = defaultdict(list)
        for (address, slots), output in zip(pieces, _outputs(answer), strict=True):
            values[address] += values_in(output, slots)
        take(group, values)

    params = ({"blockStateCalls": [block], "validation": False}, batch.block_parameter)
    batch.add("eth_simulateV1", params, read, optional=True)


def _call_reader(batch: StateBatch, group: SlotGroups, take: Take) -> None:
    """Reads the slots of one contract with eth_call."""
    [(address, slots)] = group.items()

    def read(answer: Any) -> None:
        refused = isinstance(answer, RpcRefusal)
        take(group, answer if refused else {address: values_in(answer, slots)})

    params = (
        reader_call(address, slots, batch.block.header),
        batch.block_parameter,
        reader_override([address]),
    )
    batch.add("eth_call", params, read, optional=True)


def _read_by_calls(batch: StateBatch, wanted: Sequence[Slot]) -> list[Slot]:
    """Adds a call for each contract with many slots. Returns the remaining slots."""
    rest: list[Slot] = []
    for group in _grouped(wanted, len(wanted)):
        for address, slots in group.items():
            if len(slots) < MIN_FOR_ONE_READER:
                rest += [(address, slot) for slot in slots]
                continue
            for part in _pieces(slots):
                _call_reader(batch, {address: part}, _taker(batch, Capability.CALL_READER))
    return rest


def _taker(batch: StateBatch, capability: Capability) -> Take:
    """Returns a handler for values of a known method.

    If the method fails, the handler disables it.
    """

    def take(group: SlotGroups, values: Any) -> None:
        if isinstance(values, RpcRefusal):
            batch.capabilities.set(capability, False)
            return
        for address, slots in group.items():
            for slot, value in zip(slots, values[address], strict=True):
                batch.collector.slot(address, slot, value)

    return take


def _comparer(batch: StateBatch, capability: Capability) -> Take:
    """Returns a handler that compares values of an untried method with single reads."""

    def take(group: SlotGroups, values: Any) -> None:
        if isinstance(values, RpcRefusal):
            if values.code == NOT_ANSWERED:
                batch.capabilities.unclear(capability)
            else:
                batch.capabilities.set(capability, False)
            return
        batch.compare(lambda: _compare(batch, capability, group, values))

    return take


def _compare(batch: StateBatch, capability: Capability, group: SlotGroups, values: Any) -> None:
    known = batch.collector.found.slots
    same = all(
        known.get((address, slot)) == value
        for address, slots in group.items()
        for slot, value in zip(slots, values[address], strict=True)
    )
    batch.capabilities.set(capability, same)


def _values_by_address(answer: Any, group: SlotGroups) -> Any:
    """Returns the values by address in an answer of eth_getStorageValues.

    Ignores the case of addresses.
    """
    if isinstance(answer, RpcRefusal):
        return answer
    if not isinstance(answer, Mapping):
        raise BadValue("expected an object by address")
    by_address = {str(name).lower(): values for name, values in answer.items()}
    found = {}
    for address, slots in group.items():
        values = by_address.get("0x" + address.hex())
        if not isinstance(values, list) or len(values) != len(slots):
            raise BadValue(f"no {len(slots)} values for 0x{address.hex()}")
        found[address] = [word_of(value, "slot") for value in values]
    return found


def _outputs(answer: Any) -> list[Any]:
    """Returns the outputs of the calls of a simulated block."""
    try:
        return [call["returnData"] for call in answer[0]["calls"]]
    except (TypeError, KeyError, IndexError):
        raise BadValue("no simulated calls") from None


def _grouped(slots: Sequence[Slot], limit: int) -> list[dict[bytes, list[int]]]:
    """Groups the slots by account, at most ``limit`` slots per group."""
    groups = []
    for at in range(0, len(slots), limit):
        group = defaultdict(list)
        for address, slot in slots[at : at + limit]:
            group[address].append(slot)
        groups.append(dict(group))
    return groups


def _pieces(slots: Sequence[int]) -> Iterator[Sequence[int]]:
    for at in range(0, len(slots), SLOTS_OF_A_CALL):
        yield slots[at : at + SLOTS_OF_A_CALL]
