"""Reads accounts with one call if the endpoint supports it, and does not fetch known codes
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fastevm.core.primitives.keccak import keccak256
from fastevm.core.state.source import RemoteAccount
from fastevm.fork.capabilities import Capability
from fastevm.fork.collector import MAX_NONCE, BadValue, bytes_of, word_of
from fastevm.fork.endpoints import NOT_ANSWERED
from fastevm.fork.state_batch import StateBatch
from fastevm.rpc_client.messages import RpcRefusal

EMPTY_CODE_HASH: Final = keccak256(b"")
MIN_KNOWN_CODE: Final = 2_048  # bytes; sending a shorter code is cheaper than asking for its hash
HASH_METHODS: Final = (Capability.ACCOUNT, Capability.PROOF)


def read_accounts(
    batch: StateBatch, addresses: Iterable[bytes], codes: Mapping[bytes, bytes]
) -> None:
    """Adds reads of balance, nonce and code.

    ``codes``: the codes that the accounts had at another block. If the endpoint can return code
    hashes, unchanged codes are not fetched again.
    """
    first = True
    for address in sorted(addresses):
        code = codes.get(address, b"")
        method = next((item for item in HASH_METHODS if batch.capabilities.get(item)), None)
        if method is not None and len(code) >= MIN_KNOWN_CODE:
            _by_hash(batch, method, address, code)
        elif batch.capabilities.get(Capability.ACCOUNT_INFO):
            _info(batch, address)
        else:
            _three_reads(batch, address)
            if first and batch.capabilities.get(Capability.ACCOUNT_INFO) is None:
                _try_info(batch, address)
            first = False
        if method is None and len(code) >= MIN_KNOWN_CODE:
            _try_hash(batch, address, code)


def _three_reads(batch: StateBatch, address: bytes) -> None:
    take, params = batch.collector, ("0x" + address.hex(), batch.block_parameter)
    batch.add("eth_getBalance", params, lambda answer: take.balance(address, answer))
    batch.add("eth_getTransactionCount", params, lambda answer: take.nonce(address, answer))
    batch.add("eth_getCode", params, lambda answer: take.code(address, answer))


def _info(batch: StateBatch, address: bytes) -> None:
    def take(answer: Any) -> None:
        if isinstance(answer, RpcRefusal):
            batch.capabilities.set(Capability.ACCOUNT_INFO, False)
        else:
            batch.collector.account(address, _account_of(answer))

    params = ("0x" + address.hex(), batch.block_parameter)
    batch.add("eth_getAccountInfo", params, take, optional=True)


def _try_info(batch: StateBatch, address: bytes) -> None:
    def take(answer: Any) -> None:
        if not _refused(batch, Capability.ACCOUNT_INFO, answer):
            found = _account_of(answer)
            batch.compare(lambda: _compare(batch, Capability.ACCOUNT_INFO, address, found))

    params = ("0x" + address.hex(), batch.block_parameter)
    batch.add("eth_getAccountInfo", params, take, optional=True)


def _by_hash(batch: StateBatch, method: Capability, address: bytes, code: bytes) -> None:
    """Reads balance, nonce and code hash. If this fails, reads the account with other methods."""

    def take(answer: Any) -> None:
        if isinstance(answer, RpcRefusal):
            batch.capabilities.set(method, False)
            return
        found = _account_with(answer, code)
        if found is not None:
            batch.collector.account(address, found)
        else:
            batch.changed_codes.add(address)

    batch.add(*_hash_call(batch, method, address), take, optional=True)


def _try_hash(batch: StateBatch, address: bytes, code: bytes) -> None:
    """Tries the first untried method for code hashes, in addition to ordinary reads."""
    method = next((item for item in HASH_METHODS if batch.capabilities.get(item) is None), None)
    if method is None or method in batch.tried:
        return
    batch.tried.add(method)

    def take(answer: Any) -> None:
        if not _refused(batch, method, answer):
            found = _account_with(answer, code)
            if found is not None:
                batch.compare(lambda: _compare(batch, method, address, found))

    batch.add(*_hash_call(batch, method, address), take, optional=True)


def _hash_call(
    batch: StateBatch, method: Capability, address: bytes
) -> tuple[str, tuple[Any, ...]]:
    where = "0x" + address.hex()
    if method is Capability.ACCOUNT:
        return "eth_getAccount", (where, batch.block_parameter)
    return "eth_getProof", (where, [], batch.block_parameter)


def _refused(batch: StateBatch, capability: Capability, answer: Any) -> bool:
    if not isinstance(answer, RpcRefusal):
        return False
    if answer.code == NOT_ANSWERED:
        batch.capabilities.unclear(capability)
    else:
        batch.capabilities.set(capability, False)
    return True


def _compare(
    batch: StateBatch, capability: Capability, address: bytes, found: RemoteAccount
) -> None:
    batch.capabilities.set(capability, batch.collector.found.accounts.get(address) == found)


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
