"""Endpoints with the limits and faults of public endpoints.

They reject requests, fail, return old heads, or return wrong values.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Final

from fastevm.bench.remote.proxy import JSON_TYPE, Call, Cut, Endpoint, Reply, whole
from fastevm.core.primitives.keccak import keccak256

PREFETCH: Final = (
    "debug_traceCall", "debug_traceBlockByNumber", "debug_traceBlockByHash",
    "debug_traceTransaction", "eth_simulateV1", "eth_createAccessList", "eth_getStorageValues",
    "eth_getProof", "eth_getAccountInfo", "eth_getAccount", "debug_executionWitness",
)  # fmt: skip
WIDE: Final = 1 << 30  # effectively unlimited
NOT_FOUND: Final = -32601
LIMITED: Final = -32005


@dataclass
class BatchLimit(Endpoint):
    """Rejects batches of more than ``most`` calls.

    ``form``: "one" error for the batch, HTTP "status" 413, or an error for "each" call.
    """

    most: int
    form: str = "one"  # "one", "status", "each"

    async def before(self, calls: list[Call], number: int) -> Reply | None:
        if len(calls) <= self.most:
            return None
        error = {"code": -32600, "message": f"batch too large: at most {self.most} requests"}
        if self.form == "status":
            return Reply(b"request entity too large", 413)
        if self.form == "each":
            answers = [{"jsonrpc": "2.0", "id": call.get("id"), "error": error} for call in calls]
            return Reply(json.dumps(answers).encode(), headers=dict(JSON_TYPE))
        return whole(calls, error)


@dataclass
class NoBatches(Endpoint):
    """Rejects every batch with one error or an HTTP error status."""

    status: int = 200
    seen: int = 0  # number of batches received

    async def before(self, calls: list[Call], number: int) -> Reply | None:
        if len(calls) < 2:
            return None
        self.seen += 1
        error = {"code": -32600, "message": "batch requests are not supported"}
        return whole(calls, error, self.status)


@dataclass
class Refuses(Endpoint):
    """Rejects some methods. ``whole_request``: a call of such a method fails its whole batch."""

    methods: Collection[str]
    code: int = NOT_FOUND
    message: str = "the method does not exist/is not available"
    status: int = 200
    whole_request: bool = False

    async def before(self, calls: list[Call], number: int) -> Reply | None:
        hit = [call for call in calls if call.get("method") in self.methods]
        if hit and (self.whole_request or self.status != 200):
            return whole(calls, {"code": self.code, "message": self.message}, self.status)
        return None

    def refusal(self, call: Call) -> dict[str, Any] | None:
        if call.get("method") in self.methods:
            return {"code": self.code, "message": self.message}
        return None


@dataclass
class TooMany(Endpoint):
    """Rejects ``count`` requests, beginning with request number ``first``, with a rate limit error.

    ``retry_after``: seconds in the answer. ``form``: "status" is HTTP 429, "error" an error object
    with status 200, "each" an error for each call of a batch.
    """

    count: int = 3
    first: int = 0
    retry_after: float | None = None
    form: str = "status"
    # when requests were rejected, in monotonic seconds
    refused: list[float] = field(default_factory=list)

    async def before(self, calls: list[Call], number: int) -> Reply | None:
        if not self.first <= number < self.first + self.count:
            return None
        self.refused.append(time.monotonic())
        headers = {} if self.retry_after is None else {"Retry-After": f"{self.retry_after:g}"}
        if self.form == "status":
            return Reply(b"Too Many Requests", 429, headers)
        error = {"code": 429, "message": "Your app has exceeded its compute units per second"}
        if self.form == "each":
            answers = [{"jsonrpc": "2.0", "id": call.get("id"), "error": error} for call in calls]
            body = json.dumps(answers if len(answers) > 1 else answers[0]).encode()
            return Reply(body, headers=dict(JSON_TYPE))
        return whole(calls, error | {"code": LIMITED})


@dataclass
class Limited(Endpoint):
    """Allows this many calls per second, then answers HTTP 429."""

    calls_per_second: float
    burst: float = 50.0
    refused: int = 0
    _left: float = field(init=False)
    _at: float = field(init=False)

    def __post_init__(self) -> None:
        self._left, self._at = self.burst, time.monotonic()

    async def before(self, calls: list[Call], number: int) -> Reply | None:
        now = time.monotonic()
        self._left = min(self.burst, self._left + (now - self._at) * self.calls_per_second)
        self._at = now
        if self._left < len(calls):
            self.refused += 1
            return Reply(b"Too Many Requests", 429, {"Retry-After": "1"})
        self._left -= len(calls)
        return None


@dataclass
class Fails(Endpoint):
    """Answers some requests with an HTTP error and an HTML page."""

    count: int = 2
    first: int = 0
    status: int = 502
    body: bytes = b"<html><head><title>502 Bad Gateway</title></head></html>"

    async def before(self, calls: list[Call], number: int) -> Reply | None:
        if self.first <= number < self.first + self.count:
            return Reply(self.body, self.status, {"Content-Type": "text/html"})
        return None


@dataclass
class Cuts(Endpoint):
    """Closes connections without an answer, or in the middle of an answer."""

    count: int = 2
    first: int = 0
    within: bool = False

    def _hit(self, number: int) -> bool:
        return self.first <= number < self.first + self.count

    async def before(self, calls: list[Call], number: int) -> Reply | None:
        if self._hit(number) and not self.within:
            raise Cut
        return None

    def reply(self, reply: Reply, calls: list[Call], number: int) -> Reply:
        if self._hit(number) and self.within:
            reply.cut = len(reply.body) // 2
        return reply


@dataclass
class Stalls(Endpoint):
    """Delays requests."""

    seconds: float
    count: int = 1
    first: int = 0

    async def before(self, calls: list[Call], number: int) -> Reply | None:
        if self.first <= number < self.first + self.count:
            await asyncio.sleep(self.seconds)
        return None


@dataclass
class Lies(Endpoint):
    """Returns a wrong value whenever a certain slot is read.

    Rejects eth_simulateV1, and eth_call with state overrides. Forks use them to run code that reads
    many slots, and this class cannot find the slot in the output. ``reported``: number of wrong
    values returned.
    """

    address: bytes
    slot: int
    value: int
    reported: int = 0

    def refusal(self, call: Call) -> dict[str, Any] | None:
        params = call.get("params") or []
        overrides = len(params) > 2 and call.get("method") == "eth_call"
        if overrides or call.get("method") == "eth_simulateV1":
            return {"code": NOT_FOUND, "message": "the method is not available"}
        return None

    def answered(self, call: Call, answer: Any) -> Any:
        result = answer.get("result")
        if result is None:
            return answer
        changed = self._changed(str(call.get("method")), call.get("params") or [], result)
        return answer | {"result": changed}

    def _changed(self, method: str, params: list[Any], result: Any) -> Any:
        word, at = f"0x{self.value:064x}", "0x" + self.address.hex()
        if method == "eth_getStorageAt":
            if params[0].lower() == at and int(params[1], 16) == self.slot:
                return self._lie(word)
        elif method == "eth_getStorageValues":
            return self._listed(params[0], result, word, at)
        elif method == "eth_getProof" and params[0].lower() == at:
            for proof in result["storageProof"]:
                if int(proof["key"], 16) == self.slot:
                    proof["value"] = self._lie(hex(self.value))
        elif method.startswith("debug_trace"):
            self._in_prestates(result, word, at)
        return result

    def _lie(self, value: str) -> str:
        self.reported += 1
        return value

    def _listed(self, asked: dict[str, list[str]], result: Any, word: str, at: str) -> Any:
        for address, slots in asked.items():
            for number, slot in enumerate(slots):
                if address.lower() == at and int(slot, 16) == self.slot:
                    answer = next(key for key in result if key.lower() == at)
                    result[answer][number] = self._lie(word)
        return result

    def _in_prestates(self, found: Any, word: str, at: str) -> None:
        if isinstance(found, list):
            for each in found:
                self._in_prestates(each.get("result", each), word, at)
        elif isinstance(found, dict):
            for address, account in found.items():
                if address.lower() == at and isinstance(account, dict):
                    storage = account.get("storage", {})
                    for slot in storage:
                        if int(slot, 16) == self.slot:
                            storage[slot] = self._lie(word)


@dataclass
class AccountLies(Lies):
    """Returns a wrong balance or code whenever a certain account is read."""

    slot: int = -1
    value: int = 0
    balance: int | None = None
    code: str | None = None  # code in hex

    def _changed(self, method: str, params: list[Any], result: Any) -> Any:
        here = str(params[0]).lower() == "0x" + self.address.hex() if params else False
        if method == "eth_getBalance" and here and self.balance is not None:
            return self._lie(hex(self.balance))
        if method == "eth_getCode" and here and self.code is not None:
            return self._lie(self.code)
        if method in ("eth_getProof", "eth_getAccountInfo", "eth_getAccount") and here:
            self._in_account(result)
        elif method.startswith("debug_trace"):
            self._in_prestates(result, "", "0x" + self.address.hex())
        return result

    def _in_account(self, account: Any) -> None:
        if self.balance is not None and "balance" in account:
            account["balance"] = self._lie(hex(self.balance))
        if self.code is not None and "code" in account:
            account["code"] = self._lie(self.code)
        if self.code is not None and "codeHash" in account:
            account["codeHash"] = "0x" + keccak256(bytes.fromhex(self.code[2:])).hex()

    def _in_prestates(self, found: Any, word: str, at: str) -> None:
        if isinstance(found, list):
            for each in found:
                self._in_prestates(each.get("result", each), word, at)
        elif isinstance(found, dict):
            for address, account in found.items():
                if address.lower() == at and isinstance(account, dict):
                    self._in_account(account)


@dataclass
class OldHead(Endpoint):
    """Answers every ``every``-th request like a node that lags behind.

    There, ``latest`` is the block ``head``, and later blocks are unknown.
    """

    head: int
    head_hash: str
    newer: Collection[str]  # hashes of the blocks that the lagging node does not know
    every: int = 2
    _number: int = 0

    async def before(self, calls: list[Call], number: int) -> Reply | None:
        self._number = number
        return None

    @property
    def lags(self) -> bool:
        """Whether the current request is answered by the lagging node."""
        return self._number % self.every == 0

    def _names_newer(self, params: Any) -> bool:
        if isinstance(params, dict):
            return any(self._names_newer(each) for each in params.values())
        if isinstance(params, list):
            return any(self._names_newer(each) for each in params)
        return isinstance(params, str) and params in self.newer

    def refusal(self, call: Call) -> dict[str, Any] | None:
        if self.lags and self._names_newer(call.get("params")):
            if str(call.get("method")).startswith("eth_getBlock"):
                return None
            return {"code": -32000, "message": "header not found"}
        return None

    def asked(self, call: Call) -> Call:
        if not self.lags:
            return call
        params = [
            hex(self.head) if each in ("latest", "pending") else each
            for each in call.get("params") or []
        ]
        return call | {"params": params}

    def answered(self, call: Call, answer: Any) -> Any:
        if not self.lags:
            return answer
        if call.get("method") == "eth_blockNumber":
            return answer | {"result": hex(self.head)}
        if self._names_newer(call.get("params")):
            return answer | {"result": None}
        return answer


@dataclass
class OtherChain(Endpoint):
    """Returns the chain id of a different chain."""

    chain_id: int = 999

    def answered(self, call: Call, answer: Any) -> Any:
        if call.get("method") == "eth_chainId":
            return answer | {"result": hex(self.chain_id)}
        if call.get("method") == "net_version":
            return answer | {"result": str(self.chain_id)}
        return answer


@dataclass
class Answers(Endpoint):
    """Returns changed answers. ``change`` gets the node's JSON and returns the HTTP body."""

    change: Callable[[Any], bytes]
    count: int = WIDE
    first: int = 0

    def reply(self, reply: Reply, calls: list[Call], number: int) -> Reply:
        if self.first <= number < self.first + self.count:
            reply.body = self.change(json.loads(reply.body))
        return reply


@dataclass
class Pruned(Endpoint):
    """Knows only the states of the blocks ``kept``, like a node that is no archive node."""

    kept: Collection[str]  # "latest", hex numbers, hashes

    def refusal(self, call: Call) -> dict[str, Any] | None:
        method = str(call.get("method"))
        if not method.startswith(("eth_get", "eth_call", "eth_create", "eth_simulate", "debug_")):
            return None
        if method.startswith(("eth_getBlock", "eth_getTransactionBy", "eth_getTransactionR")):
            return None
        names = json.dumps(call.get("params"))
        if any(f'"{each}"' in names for each in self.kept):
            return None
        return {"code": -32000, "message": "missing trie node 5c3e (path ) state is not available"}


def shuffled(answer: Any) -> bytes:
    """Returns the answers of a batch in a different order, which JSON-RPC allows."""
    return json.dumps(answer[::-1] if isinstance(answer, list) else answer).encode()


def with_wrong_ids(answer: Any) -> bytes:
    """Returns the answers of a batch with ids that no request has."""
    for at, each in enumerate(answer if isinstance(answer, list) else [answer]):
        each["id"] = 1_000_000 + at
    return json.dumps(answer).encode()


def with_one_missing(answer: Any) -> bytes:
    """Returns a batch without its last answer."""
    return json.dumps(answer[:-1] if isinstance(answer, list) else answer).encode()


def with_one_twice(answer: Any) -> bytes:
    """Returns a batch in which the first answer replaces the second."""
    if isinstance(answer, list) and len(answer) > 1:
        answer[1] = answer[0]
    return json.dumps(answer).encode()


def not_json(answer: Any) -> bytes:
    """Returns an HTML page instead of JSON, like a captive portal."""
    return b"<!DOCTYPE html><html><body>Please log in</body></html>"


def halved(answer: Any) -> bytes:
    """Returns the first half of the answer as if it were complete."""
    body = json.dumps(answer).encode()
    return body[: len(body) // 2]


def nothing(answer: Any) -> bytes:
    """Returns the result null for every call."""
    for each in answer if isinstance(answer, list) else [answer]:
        each["result"] = None
    return json.dumps(answer).encode()


def of_wrong_type(answer: Any) -> bytes:
    """Returns numbers where JSON-RPC requires hex strings."""
    for each in answer if isinstance(answer, list) else [answer]:
        if "result" in each:
            each["result"] = 7
    return json.dumps(answer).encode()


@dataclass
class NumbersOnly(Endpoint):
    """Accepts block numbers and tags, but no block hashes as defined by EIP-1898."""

    def refusal(self, call: Call) -> dict[str, Any] | None:
        if any(isinstance(each, dict) and "blockHash" in each for each in call.get("params") or []):
            return {"code": -32602, "message": "invalid argument: cannot unmarshal object"}
        return None
