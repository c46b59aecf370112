"""Moves a fork to another block and keeps values that Merkle proofs show to be unchanged.

One eth_getProof at the new block gives an account with the root of its storage. If the account had
the same root at the old block, all its known slots are valid at the new block. Proofs are verified
against the state roots of both headers. If an endpoint's roots are not real, as on a fork, all
values are fetched again.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from typing import Final

from fastevm.core.primitives.keccak import keccak256
from fastevm.core.state.remote import RemoteState
from fastevm.core.state.source import Found, RemoteAccount, Wanted
from fastevm.fork.account_proof import ProvenAccount, proven_account
from fastevm.fork.account_reads import EMPTY_CODE_HASH
from fastevm.fork.call_list import RpcCall
from fastevm.fork.capabilities import Capability
from fastevm.fork.refusals import is_unsupported
from fastevm.fork.remote_source import RemoteSource
from fastevm.rpc_client.messages import RpcRefusal

log = logging.getLogger(__name__)

MAX_PROVEN: Final = 256  # accounts per move; a proof has about 10 kB on mainnet


def carried_state(source: RemoteSource, old: RemoteState | None) -> RemoteState:
    """Returns the remote state of ``source`` with the values of ``old`` that did not change.

    Takes one round trip, or none if ``old`` knows no account or the endpoint does not support
    eth_getProof. Block hashes are not kept, because the two blocks may be on different branches.
    Raises ForkError.
    """
    state = RemoteState(source)
    before = None if old is None else old.source
    if old is None or not isinstance(before, RemoteSource) or before.may_change:
        return state
    session = source.session
    if session.offline or session.capabilities.get(Capability.PROOF) is False:
        return state
    known = old.known_values()
    kept = _kept(known, *_proofs(source, before, known))
    source.keep(kept)
    state.put(kept)
    return state


def _proofs(
    source: RemoteSource, before: RemoteSource, known: Found
) -> tuple[dict[bytes, ProvenAccount], dict[bytes, ProvenAccount]]:
    """Returns the proven accounts at the old and the new block, in one round trip.

    Omits accounts whose values at the new block are all in the cache.
    """
    slots = Counter(address for address, _ in known.slots)
    cached = source.cached(Wanted(set(known.accounts), set(known.slots)))
    missing = {*known.accounts} - cached.accounts.keys()
    missing.update(address for address, _ in known.slots.keys() - cached.slots.keys())
    now = sorted(missing, key=lambda address: (-slots[address], address))[:MAX_PROVEN]
    then = [item for item in now if slots[item] and item not in before.proven]
    asked = [(source, item) for item in now] + [(before, item) for item in then]
    answers = source.session.endpoints.ask(
        [
            RpcCall("eth_getProof", ("0x" + address.hex(), [], of.pinned.by_number), optional=True)
            for of, address in asked
        ]
    )
    for (of, address), answer in zip(asked, answers, strict=True):
        if isinstance(answer, RpcRefusal):
            if is_unsupported(answer):
                source.session.capabilities.set(Capability.PROOF, False)
            continue
        try:
            of.proven[address] = proven_account(of.header.get("stateRoot"), address, answer)
        except (ValueError, TypeError, KeyError) as error:
            log.info("%s: proof of 0x%s at %s: %s", of.endpoint, address.hex(), of.pinned, error)
    return before.proven, {item: source.proven[item] for item in now if item in source.proven}


def _kept(known: Found, then: dict[bytes, ProvenAccount], now: dict[bytes, ProvenAccount]) -> Found:
    """Returns the accounts at the new block, and the known slots that are still valid there."""
    kept = Found()
    for address, proven in now.items():
        account = known.accounts.get(address)
        code = b"" if account is None else account.code
        if proven.code_hash == EMPTY_CODE_HASH:
            code = b""
        elif proven.code_hash != keccak256(code):
            continue
        kept.accounts[address] = RemoteAccount(proven.balance, proven.nonce, code)
    unchanged = {
        address
        for address, proven in now.items()
        if address in then and then[address].storage_root == proven.storage_root
    }
    kept.slots.update(_of_accounts(known, unchanged))
    return kept


def _of_accounts(known: Found, addresses: set[bytes]) -> Iterable[tuple[tuple[bytes, int], int]]:
    return ((slot, value) for slot, value in known.slots.items() if slot[0] in addresses)
