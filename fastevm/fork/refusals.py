"""Classifies errors of endpoints. The codes and texts of such errors differ between clients."""

from __future__ import annotations

import re
from typing import Any, Final

from fastevm.rpc_client.messages import METHOD_NOT_FOUND, RpcRefusal

INVALID_PARAMS: Final = -32602
LIMIT_EXCEEDED: Final = -32005  # EIP-1474; for rates as well as ranges and batches
TOO_MANY_REQUESTS: Final = 429
FORBIDDEN: Final = (401, 403, 405, METHOD_NOT_FOUND, -32604, -32004)
EXECUTION_REVERTED: Final = 3

LIMITED = re.compile(
    r"rate.?limit|too many requests|compute units|capacity|throttl|quota|request limit|"
    r"per second|exceeded (its|your|the)|limit exceeded|temporarily|try again|overloaded|"
    r"header not found \(rate\)|credits",
    re.I,
)
# Limits of a single request, and reverts: a later retry would not help.
NOT_LIMITED = re.compile(
    r"revert|more than|range|results|response size|too large|too many (slots|results|logs|keys)",
    re.I,
)
BATCH = re.compile(r"batch", re.I)
UNSUPPORTED = re.compile(
    r"not (found|supported|available|whitelisted|allowed|implemented|enabled|permitted|exist)|"
    r"does ?n.t exist|unsupported|unknown method|no such method|unavailable|disabled|forbidden|"
    r"unauthori[sz]ed|upgrade|not a valid method|method handler crashed|is not in the whitelist|"
    r"deny|denied|restricted|blocked|tier|plan\b",
    re.I,
)
NO_STATE = re.compile(
    r"missing trie node|state (is )?(not|un)available|state .*pruned|pruned|historical state|"
    r"state histor|state at block|no state|required historical|distance to target block|"
    r"archive|old data not available|state recreate|world state unavailable|state already",
    re.I,
)
NO_BLOCK = re.compile(
    r"header (for hash )?not found|block.{0,80}not found|unknown block|header.{0,80}not found|"
    r"block does not exist|could not find block|hash .{0,80}not found|BlockOutOfRange|"
    r"block is out of range|not currently canonical|no block|cannot query unfinalized",
    re.I,
)
ABOUT_METHOD = re.compile(r"\bmethod\b|whitelist|\btier\b|\bplan\b", re.I)


def is_limited(answer: Any) -> bool:
    """Returns whether the error is a rate limit, so that a later retry may succeed."""
    if not isinstance(answer, RpcRefusal):
        return False
    if answer.code == TOO_MANY_REQUESTS:
        return True
    if answer.code == EXECUTION_REVERTED or means_no_state(answer):
        return False
    if BATCH.search(answer.message) or NOT_LIMITED.search(answer.message):
        return False
    return answer.code == LIMIT_EXCEEDED or bool(LIMITED.search(answer.message))


def is_unsupported(answer: Any) -> bool:
    """Returns whether the endpoint lacks this method or denies access to it."""
    if not isinstance(answer, RpcRefusal) or is_limited(answer):
        return False
    if means_no_state(answer) or means_no_block(answer):
        return False
    return answer.code in FORBIDDEN or bool(UNSUPPORTED.search(answer.message))


def means_no_state(answer: Any) -> bool:
    """Returns whether the endpoint knows the block but does not have its state."""
    return _says(answer, NO_STATE)


def means_no_block(answer: Any) -> bool:
    """Returns whether the block is unknown: too old, too new, or removed by a reorganisation."""
    return _says(answer, NO_BLOCK)


def _says(answer: Any, words: re.Pattern[str]) -> bool:
    """Returns whether an error's text matches ``words``.

    Returns False if the text says that the RPC method is missing or not allowed.
    """
    if not isinstance(answer, RpcRefusal) or answer.code == METHOD_NOT_FOUND:
        return False
    return bool(words.search(answer.message)) and not ABOUT_METHOD.search(answer.message)


def means_bad_block_parameter(answer: Any) -> bool:
    """Returns whether the endpoint does not accept a block object (EIP-1898)."""
    return (
        isinstance(answer, RpcRefusal)
        and not means_no_block(answer)
        and not means_no_state(answer)
        and (answer.code in (INVALID_PARAMS, -32600, -32700) or "invalid" in answer.message.lower())
    )
