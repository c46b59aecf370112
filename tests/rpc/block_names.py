"""Makes a request for every registered method that takes a block, also inside an object."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from fastevm.core.primitives.hex import hex_bytes
from fastevm.rpc.before_fork import BLOCK_DECODERS
from fastevm.rpc.block_id import decode_block
from fastevm.rpc.methods import METHODS
from fastevm.rpc_client.blocking import JsonRpcClient
from fastevm.rpc_client.messages import request_body

from .test_forked_node import COUNTER_CODE, accounts, counting

Json = dict[str, Any]

SENDER: Final = hex_bytes(accounts()[0].address)
# ^Init code that deploys COUNTER_CODE.
INIT_CODE: Final = f"0x60{len(COUNTER_CODE):02x}600c60003960{len(COUNTER_CODE):02x}6000f3"
# address of the contract that the first account creates with nonce 0
DEPLOYED: Final = "0x5fbdb2315678afecb367f032d93f642f64180aa3"
CALL: Final = {"from": SENDER, "to": DEPLOYED, "data": "0x"}
RAW: Final = hex_bytes(counting(accounts()[2], 0))
SLOT: Final = "0x" + "00" * 32
UNKNOWN_HASH: Final = "0x" + "11" * 32
FIRST_CALL: Final = [{"transactions": [CALL]}]
TREE: Final = {"tracer": "callTracer"}

# Method -> its params, in which the block replaces None.
OTHERS: Final[dict[str, list[Any]]] = {
    "debug_accountInfoAt": [None, "0x0", SENDER],
    "debug_codeByHash": [UNKNOWN_HASH, None],
    "debug_storageRangeAt": [None, 0, DEPLOYED, "0x", 10],
    "debug_traceBlockByNumber": [None, TREE],
    "debug_traceCall": [CALL, None, TREE],
    "eth_call": [CALL, None],
    "eth_createAccessList": [CALL, None],
    "eth_estimateGas": [CALL, None],
    "eth_feeHistory": ["0x2", None, [50]],
    "eth_getAccount": [SENDER, None],
    "eth_getAccountInfo": [SENDER, None],
    "eth_getBalance": [SENDER, None],
    "eth_getBlockByNumber": [None, True],
    "eth_getCode": [DEPLOYED, None],
    "eth_getProof": [DEPLOYED, [SLOT], None],
    "eth_getRawTransactionByBlockNumberAndIndex": [None, "0x0"],
    "eth_getStorageAt": [DEPLOYED, SLOT, None],
    "eth_getStorageValues": [{DEPLOYED: [SLOT]}, None],
    "eth_getTransactionByBlockNumberAndIndex": [None, "0x0"],
    "eth_getTransactionCount": [SENDER, None],
    "eth_getUncleByBlockNumberAndIndex": [None, "0x0"],
    "eth_simulateV1": [{"blockStateCalls": [{"calls": [CALL]}]}, None],
    "ots_getBlockTransactions": [None, 0, 5],
    "ots_hasCode": [DEPLOYED, None],
    "trace_call": [CALL, ["trace"], None],
    "trace_callMany": [[[CALL, ["trace"]]], None],
    "trace_rawTransaction": [RAW, ["trace"], None],
    "trace_replayBlockTransactions": [None, ["trace"]],
}
# Methods whose params have a block inside an object.
INSIDE: Final[dict[str, Callable[[str], list[Any]]]] = {
    "eth_getLogs": lambda name: [{"fromBlock": name, "toBlock": name}],
    "trace_filter": lambda name: [{"fromBlock": name, "toBlock": name}],
    "eth_callMany": lambda name: [FIRST_CALL, {"blockNumber": name}],
    "debug_traceCallMany": lambda name: [FIRST_CALL, {"blockNumber": name}, TREE],
    "eth_callBundle": lambda name: [{"txs": [RAW], "blockNumber": "0x9", "stateBlockNumber": name}],
}


class Named(NamedTuple):
    """A method, and a function from a block to its params.

    ``by_hash``: whether the block may also be given by hash.
    """

    method: str
    params: Callable[[Any], list[Any]]
    by_hash: bool


def requests() -> Iterator[Named]:
    """Yields a `Named` for every registered method with a block parameter."""
    for name, method in METHODS.items():
        if any(decode in BLOCK_DECODERS for decode in method.decoders):
            others = OTHERS.get(name, [None])
            yield Named(
                name,
                lambda block, others=others: [
                    block if other is None else other for other in others
                ],
                decode_block in method.decoders,
            )
    for name, params in INSIDE.items():
        yield Named(name, params, False)


def ask(client: JsonRpcClient, method: str, *params: Any) -> Json:
    """Returns the answer to a request as an object, without its id."""
    answer: Json = json.loads(client.send(request_body(method, params)))
    answer.pop("id", None)
    return answer


def result(client: JsonRpcClient, method: str, *params: Any) -> Any:
    """Returns the result of a request. Fails if the request fails."""
    answer = ask(client, method, *params)
    assert "error" not in answer, (method, answer)
    return answer["result"]


def play(client: JsonRpcClient) -> None:
    """Makes three blocks: one deploys a counter contract, two call it."""
    fees = {"maxFeePerGas": hex(10**11), "maxPriorityFeePerGas": "0x1", "gas": hex(200_000)}
    creation = {"from": SENDER, "data": INIT_CODE + COUNTER_CODE.hex()}
    for fields in (creation, CALL, CALL):
        result(client, "eth_sendTransaction", fields | fees)
        result(client, "evm_mine")
    assert result(client, "eth_getCode", DEPLOYED, "latest") == hex_bytes(COUNTER_CODE)
