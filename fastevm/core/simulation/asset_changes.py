"""Lists which accounts gained and lost assets in a call, from logs verified against storage.

Any contract may emit a Transfer log. A change is ``verified`` if the token's storage changed
accordingly: for a balance, some slot changed by the same amount; for an ERC-721 token, some slot
changed from the old to the new holder. A change from a fake log, or of a token with another storage
layout, is reported as not verified.

Sources: ERC-20, ERC-721, ERC-1155, EIP-7702.
"""

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from fastevm.core.primitives.keccak import keccak256
from fastevm.core.simulation.values import AccountChange, AssetChange, SimulatedLog, StateDiff
from fastevm.core.state.delegate import delegate_of

TRANSFER: Final = keccak256(b"Transfer(address,address,uint256)")
APPROVAL: Final = keccak256(b"Approval(address,address,uint256)")
APPROVAL_FOR_ALL: Final = keccak256(b"ApprovalForAll(address,address,bool)")
TRANSFER_SINGLE: Final = keccak256(b"TransferSingle(address,address,address,uint256,uint256)")
TRANSFER_BATCH: Final = keccak256(b"TransferBatch(address,address,address,uint256[],uint256[])")

NOBODY: Final = bytes(20)
MODULUS: Final = 2**256
ADDRESS_MASK: Final = 2**160 - 1

# (kind, token, holder, token id) -> change
Moves = dict[tuple[str, bytes, bytes, int | None], int]


def asset_changes(logs: Iterable[SimulatedLog], diff: StateDiff) -> tuple[AssetChange, ...]:
    """Returns the asset changes of a successful call in this order: ether, tokens, approvals,
    code.
    """
    moves: Moves = defaultdict(int)
    approvals: list[AssetChange] = []
    for log in logs:
        if not log.pseudo and log.topics:
            read_log(log, moves, approvals)
    found = native(diff)
    found += [
        AssetChange(
            kind=kind,
            address=holder,
            change=change,
            token=token,
            token_id=token_id,
            verified=is_verified(diff.get(token), kind, holder, change),
        )
        for (kind, token, holder, token_id), change in moves.items()
        if change and holder != NOBODY
    ]
    return tuple(found + approvals + code_changes(diff))


def native(diff: StateDiff) -> list[AssetChange]:
    """Returns the ether that each account gained or lost, including fees."""
    return [
        AssetChange(kind="native", address=address, change=change.balance[1] - change.balance[0])
        for address, change in sorted(diff.items())
        if change.balance is not None
    ]


def code_changes(diff: StateDiff) -> list[AssetChange]:
    """Returns contracts that were created or destroyed, and accounts whose delegation changed."""
    found = []
    for address, change in sorted(diff.items()):
        if change.code is not None:
            before, after = map(delegate_of, change.code)
            kind = "code" if before is None and after is None else "delegation"
            found.append(AssetChange(kind=kind, address=address, counterparty=after))
    return found


def read_log(log: SimulatedLog, moves: Moves, approvals: list[AssetChange]) -> None:
    """Adds the asset changes that one log reports."""
    event, topics = log.topics[0], log.topics
    if event == TRANSFER and len(topics) == 3 and len(log.data) == 32:
        _move(moves, "erc20", log.address, topics[1], topics[2], None, _word(log.data))
    elif event == TRANSFER and len(topics) == 4:
        _move(moves, "erc721", log.address, topics[1], topics[2], _word(topics[3]), 1)
    elif event == TRANSFER_SINGLE and len(topics) == 4 and len(log.data) == 64:
        token_id, amount = _word(log.data), _word(log.data[32:])
        _move(moves, "erc1155", log.address, topics[2], topics[3], token_id, amount)
    elif event == TRANSFER_BATCH and len(topics) == 4:
        for token_id, amount in _pairs(log.data):
            _move(moves, "erc1155", log.address, topics[2], topics[3], token_id, amount)
    elif event in (APPROVAL, APPROVAL_FOR_ALL):
        approvals += _approval(log)


def is_verified(change: AccountChange | None, kind: str, holder: bytes, amount: int) -> bool:
    """Returns whether the token's storage changed as the log says."""
    if change is None:
        return False
    written = change.storage.values()
    if kind != "erc721":
        return any((after - before - amount) % MODULUS == 0 for before, after in written)
    index = 1 if amount > 0 else 0
    return any(pair[index] & ADDRESS_MASK == int.from_bytes(holder, "big") for pair in written)


def _move(
    moves: Moves,
    kind: str,
    token: bytes,
    sender: bytes,
    recipient: bytes,
    token_id: int | None,
    amount: int,
) -> None:
    moves[kind, token, sender[12:], token_id] -= amount
    moves[kind, token, recipient[12:], token_id] += amount


def _approval(log: SimulatedLog) -> list[AssetChange]:
    if len(log.topics) == 3 and len(log.data) == 32:
        kind, token_id = ("approval", None)
        if log.topics[0] == APPROVAL_FOR_ALL:
            kind = "approvalForAll"
        amount = _word(log.data)
    elif len(log.topics) == 4:
        kind, token_id, amount = "approval", _word(log.topics[3]), 1
    else:
        return []
    return [
        AssetChange(
            kind=kind,
            address=log.topics[1][12:],
            change=amount,
            token=log.address,
            token_id=token_id,
            counterparty=log.topics[2][12:],
        )
    ]


def _pairs(data: bytes) -> list[tuple[int, int]]:
    """Returns the ids and amounts of a batch transfer, or nothing if the log data are malformed."""
    ids, amounts = _array(data, 0), _array(data, 32)
    return list(zip(ids, amounts, strict=True)) if len(ids) == len(amounts) else []


def _array(data: bytes, at: int) -> list[int]:
    offset = _word(data[at:])
    if offset + 32 > len(data):
        return []
    count = _word(data[offset:])
    if count > (len(data) - offset - 32) // 32:
        return []
    return [_word(data[offset + 32 * (i + 1) :]) for i in range(count)]


def _word(data: bytes) -> int:
    return int.from_bytes(data[:32], "big")
