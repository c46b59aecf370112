"""Runs engine tests: payloads of engine_newPayload must be accepted or rejected."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from fastevm.chain.chain import Chain
from fastevm.conformance.blockchain import (
    check_end,
    check_genesis,
    config_of,
    genesis_of,
    header_values,
    network_of,
)
from fastevm.conformance.fields import accounts_of, bytes_of, number_of
from fastevm.conformance.pre_states import layer_of
from fastevm.conformance.runner import Apart, Case, Mismatch
from fastevm.core.execution.block.block_access_list import access_list_hash
from fastevm.core.execution.block.block_decoding import decode_transaction
from fastevm.core.execution.block.requests import requests_hash
from fastevm.core.execution.block.roots import ordered_root
from fastevm.core.execution.types import LATER_FIELDS, Block, Header, Withdrawal
from fastevm.core.primitives import rlp
from fastevm.errors import InvalidBlock

ELSEWHERE: Final = "its state is in another file (the cases are those of blockchain_tests_engine)"

# Member names of header fields in payloads, where they differ from JSON-RPC blocks.
PAYLOAD_KEYS: Final = {
    "coinbase": "feeRecipient",
    "number": "blockNumber",
    "mix_hash": "prevRandao",
}


def cases(name: str, content: Mapping[str, Any]) -> Iterator[Case]:
    """Yields a case for each test of the file; skips tests whose state is in another file."""
    for title, test in content.items():
        network = network_of(test)
        if "pre" in test:
            yield title, network, partial(run, test)
        else:
            yield title, network, lambda: Apart(ELSEWHERE)


def run(test: Mapping[str, Any]) -> Mismatch | None:
    """Runs a test. Returns None if all payloads, the head and the state are as expected."""
    layer, genesis = layer_of(accounts_of(test["pre"])), genesis_of(test)
    mismatch = check_genesis(test, genesis, layer)
    if mismatch is not None:
        return mismatch
    chain = Chain(config_of(test), genesis, layer)
    for position, payload in enumerate(test["engineNewPayloads"]):
        mismatch = deliver(chain, position, payload)
        if mismatch is not None:
            return mismatch
    return check_end(test, chain)


def deliver(chain: Chain, position: int, payload: Mapping[str, Any]) -> Mismatch | None:
    """Imports a payload.

    If the test requires a rejection, the next payload builds on the old head.
    """
    why = payload.get("validationError") or payload.get("errorCode")
    try:
        chain.add(block_of(payload, chain))
    except InvalidBlock as error:
        return None if why else Mismatch(f"engineNewPayloads[{position}] accepted", str(error))
    return (
        Mismatch(f"engineNewPayloads[{position}] refused with {why}", "accepted") if why else None
    )


def block_of(payload: Mapping[str, Any], chain: Chain) -> Block:
    """Returns the block of a payload.

    Raises InvalidBlock if the parts of the payload contradict each other.
    """
    fields, hashes, beacon_root, requests = (*payload["params"], None, None, None)[:4]
    number, timestamp = number_of(fields["blockNumber"]), number_of(fields["timestamp"])
    rules = chain.config.activations.at(number, timestamp).parameters
    check_form(number, rules, payload)
    transactions = [bytes_of(raw) for raw in fields["transactions"]]
    withdrawals = withdrawals_of(fields)
    values = header_values(fields, PAYLOAD_KEYS)
    if withdrawals is not None:
        values["withdrawals_root"] = ordered_root([item.rlp() for item in withdrawals])
    if beacon_root is not None:
        values["parent_beacon_block_root"] = bytes_of(beacon_root)
    if requests is not None:
        values["requests_hash"] = requests_hash(bytes_of(item) for item in requests)
    access_list = None
    if rules["has_block_access_list"]:
        access_list = bytes_of(fields["blockAccessList"])
        values["block_access_list_hash"] = access_list_hash(access_list)
    header = Header(**values, transactions_root=ordered_root(transactions))
    require(number, "blockHash", bytes_of(fields["blockHash"]), header.hash)
    block = Block(
        header,
        tuple(
            decode_transaction(embedded(raw), f"transactions[{index}]", number)
            for index, raw in enumerate(transactions)
        ),
        (),
        withdrawals,
        access_list,
    )
    if hashes is not None:
        blobs = [item for made in block.transactions for item in made.blob_versioned_hashes]
        require(number, "versionedHashes", [bytes_of(item) for item in hashes], blobs)
    return block


def check_form(number: int, rules: Mapping[str, Any], payload: Mapping[str, Any]) -> None:
    """Checks that version, parameters, fields and order of requests match the fork."""
    fields, hashes, beacon_root, requests = (*payload["params"], None, None, None)[:4]
    given, least = number_of(payload["newPayloadVersion"]), least_version(rules)
    newest = 2 if least == 1 else least  # Paris payloads may use either version
    if not least <= given <= newest:
        raise InvalidBlock(number, "newPayloadVersion", expected=least, found=given)
    for name, present, wanted in (
        ("withdrawals", fields.get("withdrawals") is not None, rules["has_withdrawals"]),
        *(
            (row.json, fields.get(row.json) is not None, rules[row.flag])
            for row in LATER_FIELDS
            if row.kind == "int"
        ),
        ("versionedHashes", hashes is not None, rules["has_blobs"]),
        ("parentBeaconBlockRoot", beacon_root is not None, rules["has_blobs"]),
        ("executionRequests", requests is not None, rules["has_requests"]),
        ("blockAccessList", "blockAccessList" in fields, rules["has_block_access_list"]),
    ):
        require(number, name, bool(wanted), present)
    kinds = [bytes_of(item)[:1] for item in requests or () if len(bytes_of(item)) > 1]
    require(number, "executionRequests", len(requests or ()), len(set(kinds)))
    require(number, "executionRequests", sorted(kinds), kinds)


def least_version(rules: Mapping[str, Any]) -> int:
    """Returns the (lowest) version of engine_newPayload for a fork."""
    flags = ("has_withdrawals", "has_blobs", "has_requests", "has_block_access_list")
    return 1 + sum(map(bool, (rules[name] for name in flags)))


def require(number: int, field: str, expected: object, found: object) -> None:
    """Raises InvalidBlock if a part of a payload is not as expected."""
    if expected != found:
        raise InvalidBlock(number, field, expected=expected, found=found)


def withdrawals_of(fields: Mapping[str, Any]) -> tuple[Withdrawal, ...] | None:
    """Returns the withdrawals of a payload, or None before Shanghai."""
    items = fields.get("withdrawals")
    if items is None:
        return None
    return tuple(
        Withdrawal(
            number_of(item["index"]),
            number_of(item["validatorIndex"]),
            bytes_of(item["address"]),
            number_of(item["amount"]),
        )
        for item in items
    )


def embedded(raw: bytes) -> Any:
    """Returns a transaction as an item of a block's RLP: a list if legacy, otherwise a string."""
    try:
        return rlp.decode(raw) if raw[:1] >= b"\xc0" else raw
    except ValueError:
        return raw
