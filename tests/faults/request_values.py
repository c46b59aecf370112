"""Makes parameters for the request fuzzer: members of object parameters, and values for them.

`OBJECTS` has the members of each kind of object, by the name of its decoder. Most values are
plausible, so that requests pass the first checks. The other values are hostile.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from itertools import chain, combinations
from typing import Any, Final

from fastevm.node.dev_accounts import dev_accounts
from fastevm.rpc.dispatch.registry import Method, Param

Json = Any
Rng = random.Random
Maker = Callable[[Rng], Json]

HOSTILE: Final = 12  # on average, one of this many values is hostile
LONG_DATA: Final = 40  # on average, one of this many byte strings is long

ACCOUNTS: Final = ["0x" + account.address.hex() for account in dev_accounts(3)]
CONTRACT: Final = "0x" + "00" * 19 + "c5"
PRECOMPILES: Final = [f"0x{number:040x}" for number in (*range(1, 0x12), 0x100)]
ADDRESSES: Final = [*ACCOUNTS, CONTRACT, "0x" + "00" * 20, "0x" + "ee" * 20, *PRECOMPILES]
# Code that returns, reverts, loops, runs out of memory, creates, writes storage, self-destructs,
# calls or is invalid.
CODES: Final = [
    "0x602a5f5260205ff3", "0x5f5ffd", "0x5b5f56", "0x5f195f5f39", "0x5f5f5ff000",
    "0x60015f5560025f5d5f5c00", "0x33ff", "0xef", "0x5f5f5f5f5f335af1", "0x6001600155600160015500",
    "0x5f5f5fa0", "0x7f" + "ff" * 32 + "5f5260205ff3", "0x4360014380405fa1", "0x", "0x5fff",
]  # fmt: skip
QUANTITIES: Final = [
    "0x0", "0x1", "0x2", "0x5208", "0xffff", "0x989680", "0x2faf080", "0x3b9aca00",
    hex(2**63), hex(2**64 - 1), hex(2**64), hex(2**128), hex(2**256 - 1), hex(2**256),
]  # fmt: skip
HOSTILE_VALUES: Final[list[Json]] = [
    None, True, False, -1, 0, 1, 1.5, 2**53, 1e308, "", "0x", "0X1", "0x00", "0x01", "0xzz", "1",
    "0x" + "f" * 65, "latest", "pending", "nothing", [], {}, [[]], [None], {"": None},
    {"blockHash": "0x" + "00" * 32}, "\u202e\x1b[2J", "\ud800", "0x" + "1" * 1000, [[[[[]]]]],
]  # fmt: skip
TAGS: Final = ["latest", "latest", "latest", "pending", "earliest", "safe", "finalized"]
TRACERS: Final = [
    "callTracer", "prestateTracer", "4byteTracer", "flatCallTracer", "muxTracer", "noopTracer",
    "erc7562Tracer", "nothing", "", None,
]  # fmt: skip


class Known:
    """Hashes and filter ids that the node knows. The fuzzer adds them while it runs."""

    def __init__(self) -> None:
        self.transactions: list[str] = []
        self.blocks: list[str] = []
        self.raw: list[str] = []
        self.filters: list[str] = []


KNOWN: Final = Known()


def hostile(rng: Rng) -> Json:
    return rng.choice(HOSTILE_VALUES)


def one_of(values: list[Json]) -> Maker:
    return lambda rng: rng.choice(values)


def data(rng: Rng) -> str:
    if not rng.randrange(LONG_DATA):
        return "0x" + rng.randbytes(rng.randrange(5_000)).hex()
    return rng.choice(["0x", "0x00", "0x" + "ff" * 32, "0x" + rng.randbytes(36).hex(), *CODES])


def word(rng: Rng) -> str:
    return f"0x{rng.choice([0, 1, 2, 2**255, 2**256 - 1, rng.getrandbits(256)]):064x}"


def tx_hash(rng: Rng) -> str:
    return rng.choice([*KNOWN.transactions[-50:], word(rng)])


def block_hash(rng: Rng) -> str:
    return rng.choice([*KNOWN.blocks[-50:], word(rng)])


def some_hash(rng: Rng) -> str:
    return rng.choice((tx_hash, block_hash))(rng)


def raw(rng: Rng) -> str:
    return rng.choice([*KNOWN.raw[-50:], data(rng), "0x02c0", "0x03f8", "0x04c0", "0xf8"])


def block(rng: Rng) -> Json:
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice(["0x0", "0x1", "0x2", "0x3", hex(2**40), hex(2**64 - 1)])
    if kind == 1:
        return {"blockHash": block_hash(rng), "requireCanonical": rng.choice([True, False])}
    if kind == 2:
        return {"blockNumber": rng.choice(["0x0", "0x1", "0xff"])}
    return rng.choice(TAGS)


def list_of(make: Maker, most: int = 3) -> Maker:
    return lambda rng: [make(rng) for _ in range(rng.randrange(most + 1))]


def flag(rng: Rng) -> bool:
    return rng.random() < 0.5


quantity: Final = one_of(list(QUANTITIES))
address: Final = one_of(list(ADDRESSES))
count: Final = one_of([0, 1, 2, 5, "0x1", "0x5", "3", 1024, 2**32])

ACCESS_ENTRY: Final[dict[str, Maker]] = {"address": address, "storageKeys": list_of(word)}
AUTHORIZATION: Final[dict[str, Maker]] = {
    "chainId": quantity, "address": address, "nonce": quantity, "yParity": quantity, "r": word,
    "s": word,
}  # fmt: skip


def object_of(members: dict[str, Maker], rng: Rng, names: tuple[str, ...] | None = None) -> Json:
    """Returns an object with the members ``names``, or with randomly chosen members."""
    if names is None:
        names = tuple(name for name in members if rng.random() < 0.3)
    return {name: value_of(members[name], rng) for name in names}


def value_of(make: Maker, rng: Rng) -> Json:
    return hostile(rng) if not rng.randrange(HOSTILE) else make(rng)


CALL: Final[dict[str, Maker]] = {
    "from": address, "to": address, "gas": quantity, "gasPrice": quantity,
    "maxFeePerGas": quantity, "maxPriorityFeePerGas": quantity, "value": quantity,
    "nonce": quantity, "data": data, "input": data, "chainId": one_of(["0x7a69", "0x1"]),
    "accessList": list_of(partial(object_of, ACCESS_ENTRY)), "type": quantity,
    "maxFeePerBlobGas": quantity, "blobVersionedHashes": list_of(word), "blobs": list_of(data, 1),
    "commitments": list_of(data, 1), "proofs": list_of(data, 1), "sidecar": one_of([{}, None]),
    "authorizationList": list_of(partial(object_of, AUTHORIZATION)),
}  # fmt: skip


def slots(rng: Rng) -> Json:
    return {word(rng): word(rng) for _ in range(rng.randrange(3))}


ACCOUNT: Final[dict[str, Maker]] = {
    "balance": quantity, "nonce": quantity, "code": one_of(list(CODES)), "state": slots,
    "stateDiff": slots, "storage": slots, "movePrecompileToAddress": address,
}  # fmt: skip
BLOCK: Final[dict[str, Maker]] = {
    "number": quantity, "time": quantity, "timestamp": quantity, "gasLimit": quantity,
    "feeRecipient": address, "coinbase": address, "prevRandao": word, "random": word,
    "baseFeePerGas": quantity, "baseFee": quantity, "blobBaseFee": quantity,
    "difficulty": quantity, "withdrawals": one_of([[], None]), "parentBeaconBlockRoot": word,
    "beaconRoot": word, "slotNumber": quantity, "blockHash": slots,
}  # fmt: skip


def state_overrides(rng: Rng, names: tuple[str, ...] | None = None) -> Json:
    found = {address(rng): object_of(ACCOUNT, rng) for _ in range(rng.randrange(3))}
    if names is not None:
        found[address(rng)] = object_of(ACCOUNT, rng, names)
    return found


BLOCK_CALLS: Final[dict[str, Maker]] = {
    "blockOverrides": partial(object_of, BLOCK), "stateOverrides": state_overrides,
    "calls": list_of(partial(object_of, CALL)),
}  # fmt: skip
SIMULATION: Final[dict[str, Maker]] = {
    "blockStateCalls": list_of(partial(object_of, BLOCK_CALLS)), "traceTransfers": flag,
    "validation": flag, "returnFullTransactions": flag, "returnStateDiff": flag,
    "returnAssetChanges": flag, "returnAccessList": flag, "returnCallTree": flag,
}  # fmt: skip
FILTER: Final[dict[str, Maker]] = {
    "fromBlock": block, "toBlock": block, "blockHash": block_hash,
    "address": lambda rng: rng.choice([address(rng), [address(rng)] * 3, []]),
    "topics": list_of(lambda rng: rng.choice([None, word(rng), [word(rng)] * 2]), 5),
}  # fmt: skip
TRACER_CONFIG: Final[dict[str, Maker]] = {
    "onlyTopCall": flag, "withLog": flag, "diffMode": flag, "disableCode": flag,
    "disableStorage": flag, "includeEmpty": flag, "convertParityErrors": flag,
    "includePrecompiles": flag, "callTracer": one_of([{}, None]), "stackTopItemsSize": count,
}  # fmt: skip
TRACE_CONFIG: Final[dict[str, Maker]] = {
    "tracer": one_of(list(TRACERS)), "tracerConfig": partial(object_of, TRACER_CONFIG),
    "timeout": one_of(["1s", "10ms", "0s", "-1s", "1h", "x"]), "reexec": count, "limit": count,
    "enableMemory": flag, "disableStack": flag, "disableStorage": flag, "enableReturnData": flag,
    "debug": flag, "overrides": one_of([{}, None]),
}  # fmt: skip
CALL_TRACE_CONFIG: Final = TRACE_CONFIG | {
    "stateOverrides": state_overrides, "blockOverrides": partial(object_of, BLOCK),
    "txIndex": quantity,
}  # fmt: skip
BUNDLE: Final[dict[str, Maker]] = {
    "transactions": list_of(partial(object_of, CALL)), "blockOverride": partial(object_of, BLOCK),
}  # fmt: skip
STATE_CONTEXT: Final[dict[str, Maker]] = {
    "blockNumber": block, "transactionIndex": one_of([-1, 0, 1, 5]),
}  # fmt: skip
CALL_BUNDLE: Final[dict[str, Maker]] = {
    "txs": list_of(raw), "blockNumber": quantity, "stateBlockNumber": block,
    "timestamp": count, "gasLimit": quantity, "baseFee": quantity, "coinbase": address,
    "difficulty": quantity, "timeout": count,
}  # fmt: skip
TRACE_FILTER: Final[dict[str, Maker]] = {
    "fromBlock": block, "toBlock": block, "fromAddress": list_of(address),
    "toAddress": list_of(address), "after": count, "count": count,
    "mode": one_of(["union", "intersection", "x"]),
}  # fmt: skip
DEPOSIT: Final[dict[str, Maker]] = {
    "from": address, "to": address, "mint": quantity, "value": quantity, "gas": quantity,
    "data": data, "isCreation": flag,
}  # fmt: skip
ATTRIBUTES: Final[dict[str, Maker]] = {
    "timestamp": quantity, "prevRandao": word, "suggestedFeeRecipient": address,
    "withdrawals": one_of([[], None]), "parentBeaconBlockRoot": word, "slotNumber": quantity,
}  # fmt: skip
TYPED_DATA: Final[dict[str, Maker]] = {
    "types": one_of([{}, {"EIP712Domain": []}, {"A": [{"name": "a", "type": "A[]"}]}]),
    "primaryType": one_of(["A", "EIP712Domain", "B"]), "domain": one_of([{}, {"name": "x"}]),
    "message": one_of([{}, {"a": []}, {"a": [{"a": []}]}]),
}  # fmt: skip

OBJECTS: Final[dict[str, dict[str, Maker]]] = {
    "decode_call": CALL,
    "decode_transaction": CALL,
    "decode_block_overrides": BLOCK,
    "decode_filter": FILTER,
    "as_it_is": SIMULATION,
    "decode_trace_config": TRACE_CONFIG,
    "decode_call_trace_config": CALL_TRACE_CONFIG,
    "decode_state_context": STATE_CONTEXT,
    "decode_call_bundle": CALL_BUNDLE,
    "decode_trace_filter": TRACE_FILTER,
    "decode_deposit": DEPOSIT,
    "decode_attributes": ATTRIBUTES,
    "decode_typed_data": TYPED_DATA,
    "decode_estimate_options": {"l1Fee": flag},
}
"""Name of a decoder -> the members of the object that it decodes."""

NESTED: Final[dict[str, tuple[dict[str, Maker], Callable[[Rng, Json], Json]]]] = {
    "decode_bundles": (CALL, lambda rng, call: [{"transactions": [call, object_of(CALL, rng)]}]),
    "decode_typed_calls": (CALL, lambda rng, call: [[call, trace_types(rng)]] * 2),
    "decode_state_overrides": (ACCOUNT, lambda rng, account: {address(rng): account}),
}
"""Name of a decoder -> the members of an object, and a function that wraps it in the parameter."""


def trace_types(rng: Rng) -> Json:
    names = ["trace", "vmTrace", "stateDiff", "nothing"]
    return rng.sample(names, rng.randrange(len(names) + 1))


VALUES: Final[dict[str, Maker]] = {
    "decode_block": block,
    "decode_number_or_tag": block,
    "decode_number_tag_or_int": lambda rng: rng.choice([block(rng), 0, 1, 7]),
    "decode_count": count,
    "decode_number": count,
    "decode_uint64": quantity,
    "decode_text": lambda rng: rng.choice([*KNOWN.filters[-20:], "0x1", "text", word(rng)]),
    "decode_percentiles": one_of([[], [10, 50.5], [0, 100], [50, 10], [101], [1e400]]),
    "decode_keys": list_of(word),
    "decode_slot_requests": lambda rng: {address(rng): [word(rng)] * 2},
    "decode_positions": one_of([[], ["0x0"], ["0x0", "0x1"], [0]]),
    "decode_types": trace_types,
    "decode_transactions": list_of(raw),
    "decode_rlp_block": data,
    "decode_address": address,
    "decode_bool": flag,
    "decode_bytes": raw,
    "decode_hash": some_hash,
}
"""Name of a decoder -> a function that makes a parameter that is not an object."""


def decoder_name(param: Param) -> str:
    """Returns the name of a parameter's decoder."""
    decode = param.decode
    return getattr(decode, "__name__", None) or getattr(decode.func, "__name__")  # type: ignore[attr-defined]  # noqa: B009


def members_of(param: Param) -> dict[str, Maker]:
    """Returns the members to combine in an object parameter, or none for other parameters."""
    name = decoder_name(param)
    return OBJECTS.get(name) or (NESTED[name][0] if name in NESTED else {})


def combinations_of(members: dict[str, Maker]) -> list[tuple[str, ...]]:
    """Returns every single member, and every combination of two or three members."""
    return list(chain.from_iterable(combinations(members, size) for size in (1, 2, 3)))


def parameter(param: Param, rng: Rng, names: tuple[str, ...] | None = None) -> Json:
    """Returns a random value for a parameter. If it is an object, it has the members ``names``."""
    name = decoder_name(param)
    if names is None and not rng.randrange(HOSTILE):
        return hostile(rng)
    if name in OBJECTS:
        return object_of(OBJECTS[name], rng, names)
    if name in NESTED:
        members, make = NESTED[name]
        return make(rng, object_of(members, rng, names))
    return VALUES.get(name, hostile)(rng)


def parameters(
    method: Method, rng: Rng, position: int = -1, names: tuple[str, ...] = ()
) -> list[Json]:
    """Returns random parameters for a method.

    The object at ``position`` has the members ``names``.
    """
    values = [
        parameter(param, rng, names if index == position else None)
        for index, param in enumerate(method.params)
    ]
    least = position + 1
    return values[: rng.randint(least, len(values))] if not rng.randrange(4) else values
