"""Reads accounts: with one call where the endpoint supports it, without known codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastevm.core.primitives.keccak import keccak256
from fastevm.core.state.source import RemoteAccount
from fastevm.fork.capabilities import Ability
from fastevm.fork.collector import MAX_NONCE, BadValue, bytes_of, word_of
from fastevm.fork.endpoints import NOT_ANSWERED
from fastevm.fork.state_batch import StateTrip
from fastevm.rpc_client.messages import RpcRefusal

EMPTY_CODE_HASH: Final = keccak256(b"")
MIN_KNOWN_CODE: Final = 2_048  # bytes; sending a shorter code costs less than asking for its hash
HASH_WAYS: Final = (Ability.ACCOUNT, Ability.PROOF)


def read_accounts(
    trip: StateTrip, addresses: Iterable[bytes], codes: Mapping[bytes, bytes]
) -> None:
    """Adds reads of balance, nonce and code.

    ``codes``: codes that the accounts had at another block. If the endpoint supports reading code
    hashes, unchanged codes are not fetched again.
    """
    first = True
    for address in sorted(addresses):
        code = codes.get(address, b"")
        way = next((one for one in HASH_WAYS if trip.abilities.get(one)), None)
        if way is not None and len(code) >= MIN_KNOWN_CODE:
            _by_hash(trip, way, address, code)
        elif trip.abilities.get(Ability.ACCOUNT_INFO):
            _info(trip, address)
        else:
            _three_reads(trip, address)
            if first and trip.abilities.get(Ability.ACCOUNT_INFO) is None:
                _try_info(trip, address)
            first = False
        if way is None and len(code) >= MIN_KNOWN_CODE:
            _try_hash(trip, address, code)


def _three_reads(trip: StateTrip, address: bytes) -> None:
    take, params = trip.collector, ("0x" + address.hex(), trip.block_parameter)
    trip.add("eth_getBalance", params, lambda answer: take.balance(address, answer))
    trip.add("eth_getTransactionCount", params, lambda answer: take.nonce(address, answer))
    trip.add("eth_getCode", params, lambda answer: take.code(address, answer))


def _info(trip: StateTrip, address: bytes) -> None:
    def take(answer: Any) -> None:
        if isinstance(answer, RpcRefusal):
            trip.abilities.set(Ability.ACCOUNT_INFO, False)
        else:
            trip.collector.account(address, _account_of(answer))

    params = ("0x" + address.hex(), trip.block_parameter)
    trip.add("eth_getAccountInfo", params, take, optional=True)


def _try_info(trip: StateTrip, address: bytes) -> None:
    def take(answer: Any) -> None:
        if not _refused(trip, Ability.ACCOUNT_INFO, answer):
            found = _account_of(answer)
            trip.compare(lambda: _compare(trip, Ability.ACCOUNT_INFO, address, found))

    params = ("0x" + address.hex(), trip.block_parameter)
    trip.add("eth_getAccountInfo", params, take, optional=True)


def _by_hash(trip: StateTrip, way: Ability, address: bytes, code: bytes) -> None:
    """Reads balance, nonce and code hash. If this fails, the account is read again."""

    def take(answer: Any) -> None:
        if isinstance(answer, RpcRefusal):
            trip.abilities.set(way, False)
            return
        found = _account_with(answer, code)
        if found is not None:
            trip.collector.account(address, found)
        else:
            trip.changed_codes.add(address)

    trip.add(*_hash_call(trip, way, address), take, optional=True)


def _try_hash(trip: StateTrip, address: bytes, code: bytes) -> None:
    """Tries the first untried method to read a code hash, beside ordinary reads of the account."""
    way = next((one for one in HASH_WAYS if trip.abilities.get(one) is None), None)
    if way is None or way in trip.tried:
        return
    trip.tried.add(way)

    def take(answer: Any) -> None:
        if not _refused(trip, way, answer):
            found = _account_with(answer, code)
            if found is not None:
                trip.compare(lambda: _compare(trip, way, address, found))

    trip.add(*_hash_call(trip, way, address), take, optional=True)


def _hash_call(trip: StateTrip, way: Ability, address: bytes) -> tuple[str, tuple[Any, ...]]:
    where = "0x" + address.hex()
    if way is Ability.ACCOUNT:
        return "eth_getAccount", (where, trip.block_parameter)
    return "eth_getProof", (where, [], trip.block_parameter)


def _refused(trip: StateTrip, ability: Ability, answer: Any) -> bool:
    if not isinstance(answer, RpcRefusal):
        return False
    if answer.code == NOT_ANSWERED:
        trip.abilities.unclear(ability)
    else:
        trip.abilities.set(ability, False)
    return True


def _compare(trip: StateTrip, ability: Ability, address: bytes, found: RemoteAccount) -> None:
    trip.abilities.set(ability, trip.collector.found.accounts.get(address) == found)


def _account_of(answer: Any) -> RemoteAccount:
    if not isinstance(answer, Mapping):
        raise BadValue("no account")
    return RemoteAccount(
        word_of(answer.get("balance"), "balance"),
        word_of(answer.get("nonce"), "nonce", MAX_NONCE),
        bytes_of(answer.get("code"), "code"),
    )


def _account_with(answer: Any, code: bytes) -> RemoteAccount | None:
    """Returns the account if its code is empty or equal to ``code``."""
    if not isinstance(answer, Mapping):
        raise BadValue("no account")
    digest = bytes_of(answer.get("codeHash"), "codeHash", 32)
    if digest in (EMPTY_CODE_HASH, bytes(32)):
        code = b""
    elif digest != keccak256(code):
        return None
    return RemoteAccount(
        word_of(answer.get("balance"), "balance"),
        word_of(answer.get("nonce"), "nonce", MAX_NONCE),
        code,
    )
