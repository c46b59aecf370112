"""Requests blocks, transactions, receipts and logs up to the fork block once, and caches them on
disk.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fastevm.core.primitives.config_values import read_number
from fastevm.fork.call_list import RpcCall
from fastevm.fork.disk_cache import CachedBlock
from fastevm.fork.pinned_block import PinnedBlock
from fastevm.fork.session import Session
from fastevm.rpc_client.messages import RpcRefusal

# Methods whose answer depends only on the chain up to a block -> index of the block parameter.
BY_NUMBER: Final = {
    "eth_getBlockByNumber": 0,
    "eth_getBlockReceipts": 0,
    "eth_getBlockTransactionCountByNumber": 0,
    "eth_getUncleCountByBlockNumber": 0,
    "eth_getTransactionByBlockNumberAndIndex": 0,
    "debug_traceBlockByNumber": 0,
}
BY_HASH: Final = {
    "eth_getBlockByHash",
    "eth_getBlockTransactionCountByHash",
    "eth_getTransactionByBlockHashAndIndex",
    "debug_traceBlockByHash",
}
# Methods whose parameter is a transaction hash. The answer contains the block.
BY_TRANSACTION: Final = {"eth_getTransactionByHash", "eth_getTransactionReceipt"}
Call = tuple[str, Sequence[Any]]


class History:
    """Calls about the chain up to ``block``. Answers about these blocks are requested only once."""

    def __init__(self, session: Session, block: PinnedBlock, cached: CachedBlock | None) -> None:
        self.session, self.block, self.cached = session, block, cached

    def batch(self, calls: Sequence[Call]) -> list[Any]:
        """Returns a result or RpcRefusal for each call, in one round trip. Raises ForkError."""
        answers: list[Any] = [self._kept(call) for call in calls]
        indices = [index for index, answer in enumerate(answers) if answer is None]
        self.session.counters.add(hits=len(calls) - len(indices))
        if not indices:
            return answers
        asked = [RpcCall(*calls[index]) for index in indices]
        keeps = self.cached is not None and any(map(self._may_keep, calls))
        if keeps:  # block numbers must still refer to the same blocks as when the fork was opened
            asked.append(RpcCall("eth_getBlockByNumber", (self.block.by_number, False)))
        found = self.session.endpoints.ask(asked)
        same = keeps and isinstance(found[-1], Mapping) and self._is_pinned(found[-1])
        for index, answer in zip(indices, found, strict=False):
            answers[index] = answer
            if self._keeps_answer(calls[index], answer, same):
                self._keep(calls[index], answer)
        return answers

    def _is_pinned(self, found: Mapping[str, Any]) -> bool:
        return bool(found.get("hash") == "0x" + self.block.hash.hex())

    def _may_keep(self, call: Call) -> bool:
        """Returns whether an answer may be cached. Calls by hash need no check of the block."""
        method, params = call
        if method in BY_NUMBER and params:
            return self._is_below(params[BY_NUMBER[method]])
        if method == "eth_getLogs" and params:
            return self._is_below((params[0] or {}).get("toBlock"))
        return method in BY_TRANSACTION

    def _keeps_answer(self, call: Call, answer: Any, same: bool) -> bool:
        if answer is None or isinstance(answer, RpcRefusal) or self.cached is None:
            return False
        method, params = call
        if method in BY_HASH or (method == "eth_getLogs" and (params[0] or {}).get("blockHash")):
            return True
        if method in BY_TRANSACTION:
            number = answer.get("blockNumber") if isinstance(answer, Mapping) else None
            return same and number is not None and self._is_below(number)
        return same and self._may_keep(call)

    def _is_below(self, number: Any) -> bool:
        """Returns whether this is a block number up to the pinned block. Tags do not count."""
        try:
            return read_number(number, "block") <= self.block.number
        except ValueError:
            return False

    def _kept(self, call: Call) -> Any:
        if self.cached is None or self.session.cache is None:
            return None
        return self.session.cache.response(self.cached, _key(call))

    def _keep(self, call: Call, answer: Any) -> None:
        assert self.cached is not None
        assert self.session.cache is not None
        self.session.cache.put_response(self.cached, _key(call), answer)


def _key(call: Call) -> bytes:
    method, params = call
    return json.dumps([method, list(params)], sort_keys=True, separators=(",", ":")).encode()
