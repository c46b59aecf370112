"""Tests that direct reads of the newest state give the handlers' answers.

Requests are generated and damaged at random. A dispatcher without direct reads is the oracle.
"""

import json
import random
from collections.abc import Awaitable, Callable

import pytest

from fastevm.core.state.layer import Layer
from fastevm.rpc.dispatch.registry import METHODS
from fastevm.rpc_types.state_reads import Read, StateReads

from .conftest import Caller, MakeCaller
from .fakes import FakeNode, FakePending, chain_of, header

ROUNDS = 4_000
A, B, NOBODY = (bytes([byte]) * 20 for byte in (0xAA, 0xB0, 0xEE))
ACCOUNTS = {
    A: {"balance": 2**255 + 7, "nonce": 5, "code": b"\x60\x00\xfe", "storage": {1: 7, 2**255: 1}},
    B: {"balance": 1, "nonce": 2**64 - 2},
}
SLOTS = ("0x0", "0x1", "0x01", "0x" + "0" * 63 + "1", "0x8" + "0" * 63, "0x", "1", "0x" + "1" * 65,
         "0X1", "0xg")  # fmt: skip
IDS = ("1", "0", "12345678901234567890123", '"a"', '"a b"', '""', "null", "-1", "1.5", "1e3", "01",
       '"\\u0061"', '"é"', "[1]", "true")  # fmt: skip
METHOD_NAMES = tuple(name for name, method in METHODS.items() if method.reads is not None)

Respond = Callable[[bytes], Awaitable[bytes]]


@pytest.fixture
def node() -> FakeNode:
    """Provides a node with different states at ``latest`` and ``pending``."""
    node = FakeNode(chain_of(3, ACCOUNTS))
    node.pending_block = FakePending(
        header=header(3, parent_hash=node.chain.head.hash),
        layer=Layer.of({**ACCOUNTS, A: {"balance": 3, "nonce": 6, "storage": {1: 8}}}),
    )
    return node


@pytest.fixture
def caller(node: FakeNode, make_caller: MakeCaller) -> Caller:
    return make_caller(node)


@pytest.fixture
def oracle(node: FakeNode, make_caller: MakeCaller) -> Respond:
    """Provides a dispatcher that uses handlers for all requests."""
    caller = make_caller(node)
    caller.dispatcher.reads = StateReads({}, 1)
    return caller.dispatcher.answer


def params_of(name: str, dice: random.Random) -> list[object]:
    """Returns params of a method, usually valid."""
    params: list[object] = []
    if name not in ("eth_blockNumber", "eth_chainId"):
        address = "0x" + dice.choice((A, B, NOBODY)).hex()
        params.append(dice.choice((address, address, address.upper(), address[:-1], 7, None)))
        if dice.random() < 0.8:
            params[0] = address
        if name == "eth_getStorageAt":
            params.append(dice.choice(SLOTS))
        tags = ("latest", "pending", "pending", "latest", "safe", "earliest", "0x2", "soon", None)
        params.append(dice.choice(tags[: dice.choice((4, 4, 9))]))
    if dice.random() < 0.1:
        params = params[:-1] if dice.random() < 0.5 else [*params, "latest"]
    return params


def request(dice: random.Random) -> str:
    """Returns the text of a request, mostly in the usual form."""
    name = dice.choice(METHOD_NAMES)
    members = {
        "jsonrpc": '"2.0"' if dice.random() < 0.97 else '"1.0"',
        "id": dice.choice(IDS[: dice.choice((3, 3, 3, len(IDS)))]),
        "method": f'"{name if dice.random() < 0.97 else "eth_nothing"}"',
        "params": json.dumps(
            params_of(name, dice), separators=dice.choice(((",", ":"), (", ", ":")))
        ),
    }
    if dice.random() < 0.1:
        del members[dice.choice(tuple(members))]
    order = list(members)
    if dice.random() < 0.3:
        dice.shuffle(order)
    if dice.random() < 0.05:
        order.append(dice.choice(order))
    colon, comma = dice.choice(((":", ","), (": ", ", "), ("\t:\n", " ,")))
    return "{" + comma.join(f'"{key}"{colon}{members[key]}' for key in order) + "}"


def body(dice: random.Random) -> bytes:
    """Returns a request or a batch, sometimes with a damaged byte."""
    text = request(dice)
    if dice.random() < 0.6:
        text = "[" + ",".join(request(dice) for _ in range(dice.randint(0, 4))) + "]"
    raw = bytearray(text.encode())
    if dice.random() < 0.3:
        at = dice.randrange(len(raw))
        raw[at : at + dice.choice((0, 1))] = dice.choice(
            (b"", b'"', b"]", b"}", b"0", b"\\", b"\xc3")
        )
    return bytes(raw)


async def test_every_answer_is_that_of_the_handlers(caller: Caller, oracle: Respond) -> None:
    dice, respond, understood = random.Random(11), caller.dispatcher.answer, 0
    for _ in range(ROUNDS):
        raw = body(dice)
        assert await respond(raw) == await oracle(raw), raw
        understood += caller.dispatcher.reads.read(raw)
    assert understood > ROUNDS // 5


@pytest.mark.parametrize("name", METHOD_NAMES)
@pytest.mark.parametrize("tag", ["latest", "pending"])
async def test_each_read_of_state_is_understood(
    caller: Caller, oracle: Respond, name: str, tag: str
) -> None:
    what = METHODS[name].reads
    params = {Read.BLOCK_NUMBER: [], Read.CHAIN_ID: [], Read.STORAGE: ["0x" + A.hex(), "0x1", tag]}
    call = {"jsonrpc": "2.0", "id": 1, "method": name}
    raw = json.dumps(call | {"params": params.get(what, ["0x" + A.hex(), tag])}).encode()
    assert caller.dispatcher.reads.read(raw)
    assert await caller.dispatcher.answer(raw) == await oracle(raw)
    assert json.loads(await oracle(raw))["result"]


async def test_a_batch_of_too_many_reads_is_left_to_the_limits(
    node: FakeNode, make_caller: MakeCaller
) -> None:
    caller = make_caller(node, batch_items=2)
    call = b'{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'
    answers = json.loads(await caller.dispatcher.answer(b"[%b,%b]" % (call, call)))
    assert [answer["result"] for answer in answers] == ["0x2", "0x2"]
    assert json.loads(await caller.dispatcher.answer(b"[%b,%b,%b]" % (call, call, call)))[0][
        "error"
    ]


async def test_an_answer_beyond_the_limit_is_cut_as_ever(
    node: FakeNode, make_caller: MakeCaller
) -> None:
    caller = make_caller(node, batch_response_size=100)
    call = b'{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'
    answers = json.loads(await caller.dispatcher.answer(b"[" + b",".join([call] * 5) + b"]"))
    assert "result" in answers[0]
    assert "too large" in answers[-1]["error"]["message"]


async def test_reads_are_counted_by_method(caller: Caller) -> None:
    call = '{"jsonrpc":"2.0","id":1,"method":"%s","params":[]}'
    names = ["eth_blockNumber", "eth_chainId", "eth_blockNumber"]
    await caller.dispatcher.answer(("[" + ",".join(call % name for name in names) + "]").encode())
    text = caller.dispatcher.metrics.render({})
    assert 'requests_total{method="eth_blockNumber"} 2' in text
    assert 'requests_total{method="eth_chainId"} 1' in text


def test_a_method_that_is_not_there_is_not_read() -> None:
    reads = StateReads({"eth_chainId": Read.CHAIN_ID}, 1)
    for name in ("", "eth_blockNumber", "eth_chainI", "eth_chainIdd"):
        assert not reads.read(b'{"jsonrpc":"2.0","id":1,"method":"%b"}' % name.encode())
    assert reads.read(b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}')


def test_a_state_that_is_no_layer_is_left_to_the_handlers(caller: Caller) -> None:
    reads = caller.dispatcher.reads
    assert reads.read(b'{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}')
    assert reads.answer(object(), object(), 1, 1, 1_000) is None
