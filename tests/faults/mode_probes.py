"""Short programs that use the library as users do. `test_modes` runs them in several modes.

Each probe returns a short text, which must be the same in every mode: on the main thread, in other
threads, in tasks and in other processes.
"""

import asyncio
import inspect
import pickle
import tempfile
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import fastevm
from fastevm import EVM, Contract, Hooks, Layer, simulate_async, simulate_many

A, B, LOOPS = b"\xa1" * 20, b"\xb0" * 20, b"\x01" * 20
STATE = Layer.of({LOOPS: {"code": bytes.fromhex("5b5f56")}, A: {"balance": 10**20}})
MUCH_GAS = 2**50  # gas for a loop that takes longer than any test
GREAT = {"gas_cap": MUCH_GAS, "gas_limit": MUCH_GAS}
LIMIT = 120.0  # seconds


def text_of(run: Callable[[], Any]) -> str:
    """Returns a text that names the exception that ``run`` raises."""
    try:
        return f"no error: {run()!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def leaves_a_batch() -> str:
    def first() -> Any:
        for result in simulate_many(STATE, [[{"from": A, "to": B, "value": 1}]] * 64, threads=2):
            if result.success:
                return result.index
        return None

    found = {first() for _ in range(50)}
    batch = simulate_many(STATE, [[{"to": B}]] * 64, threads=2, chunk_size=1)
    next(batch)
    left = weakref.ref(batch)
    # Reference counting frees the batch here. The garbage collector may run in any thread.
    del batch
    return f"{found} {left()}"


def stops_at_its_limit() -> str:
    bundle = [{"to": LOOPS, "gas": MUCH_GAS}]
    (result,) = simulate_many(STATE, [bundle], threads=1, timeout=0.05, **GREAT)
    run = text_of(lambda: EVM(state=STATE).call(LOOPS, gas=MUCH_GAS, timeout=0.05))
    return f"{run} / {result.error}"


def stops_when_cancelled() -> str:
    evm = EVM(state=STATE, gas_limit=MUCH_GAS, unchecked=("gas_cap", "balance"))
    ended = threading.Event()

    def cancel() -> None:
        while not ended.wait(0.01):
            evm.cancel()

    thread = threading.Thread(target=cancel, daemon=True)
    thread.start()
    result = text_of(lambda: evm.call(LOOPS, gas=MUCH_GAS))
    ended.set()
    thread.join()
    return result


def cancels_tasks() -> str:
    """Runs an event loop in a separate thread, because the probe itself may run on a loop."""
    endless: list[dict[str, Any]] = [{"to": LOOPS, "gas": MUCH_GAS}]
    options: Any = {**GREAT, "timeout": 1e6}

    async def simulation() -> None:
        await simulate_async(STATE, endless, **options)

    async def batch() -> None:
        await simulate_many(STATE, [endless] * 2, threads=2, **options)

    async def stream() -> None:
        async for _ in simulate_many(STATE, [endless] * 2, threads=2, **options):
            pass

    async def main() -> str:
        loop, found = asyncio.get_running_loop(), []
        for run in (simulation, batch, stream):
            task = loop.create_task(run())
            await asyncio.sleep(0.1)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                found.append(run.__name__)
        # Waits for the executor's threads, which end only if no run uses them any more.
        await asyncio.wait_for(loop.shutdown_default_executor(), LIMIT)
        return " ".join(found)

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, main()).result(LIMIT)


def traces_deep_calls() -> str:
    evm = EVM(gas_limit=10**13, unchecked=["gas_cap", "balance"])
    evm.set_code(B, "0x5f546001015f555f5f5f5f5f305af150")  # increments slot 0, then calls itself
    trace: Any = evm.transact(B, gas=10**12, trace="calls").trace
    depth = 0
    while trace.get("calls"):
        trace, depth = trace["calls"][0], depth + 1
    return f"{depth} {evm.storage(B, 0)}"


def names_the_limit_of_steps_and_keeps_nothing() -> str:
    evm = EVM(gas_limit=10**12, state=STATE, unchecked=["gas_cap"])
    evm.set_code(B, "0x60015f555b600456")  # stores 1 in slot 0, then loops
    before = evm.state
    text = text_of(lambda: evm.transact(B, sender=A, gas=10**8, trace="steps"))
    return f"{'limit' in text} {'hooks' in text} {evm.state is before}"


def traces_deep_calls_over_a_node() -> str:
    from fastevm.integrations.local_node import LocalNode

    code = "0x5f5f5f5f5f305af150"  # calls itself
    overrides = {"0x" + B.hex(): {"code": code}}
    options = {"tracer": "callTracer", "stateOverrides": overrides}
    with LocalNode(rpc_gascap=10**12) as node:
        call = {"to": "0x" + B.hex(), "gas": hex(10**12)}
        trace = node.request("debug_traceCall", [call, "latest", options])
    depth = 0
    while trace.get("calls"):
        trace, depth = trace["calls"][0], depth + 1
    return str(depth)


def sends_typed_transactions() -> str:
    evm = EVM(chain_id=10, base_fee=0, state=STATE)
    fees: Any = {"sender": A, "max_fee_per_gas": 2, "max_priority_fee_per_gas": 1}
    found = [evm.transact(B, **fees).success, evm.deploy(b"", **fees).success]
    found.append(evm.transact(B, chain_id=10, **fees).success)
    return f"{found} {text_of(lambda: evm.transact(B, gas_price=1, **fees)).split(':')[0]}"


def sends_lists_without_fee_caps() -> str:
    """An authorization list or blob hashes determine the transaction's type, not the fees."""
    evm = EVM(chain_id=10, base_fee=0, state=STATE)
    # Invalid authorizations do not make a transaction invalid.
    listed: Any = [(10, B, 0, 0, 1, 1)]
    short = evm.transact(B, sender=A).gas_used
    more = evm.transact(B, sender=A, gas=100_000, authorization_list=listed).gas_used - short
    blobs = evm.transact(B, sender=A, blob_versioned_hashes=[b"\x01" + bytes(31)],
                         max_fee_per_blob_gas=1)  # fmt: skip
    return f"{more} {blobs.success} {evm.balance(A) < 10**20}"


def refuses_python_in_batches() -> str:
    with_precompile, with_hooks = EVM(state=STATE), EVM(state=STATE)
    with_precompile.precompiles[B] = lambda data, gas: data
    with_hooks.hooks = Hooks(enter=print)
    found = []
    for evm in (with_precompile, with_hooks):
        found.append(text_of(lambda evm=evm: fastevm.simulate(evm, [{"to": B}])))
        found.append(text_of(lambda evm=evm: list(simulate_many(evm, [[{"to": B}]]))))
    return " ".join(text.split(":")[0] for text in found)


def runs_in_the_named_block() -> str:
    code = bytes.fromhex("435f52" + "42602052" + "48604052" + "60605ff3")
    state = Layer.of({B: {"code": code}})
    options: Any = {"number": 77, "timestamp": 1_000, "base_fee": 9}
    calls = [{"to": B, "gas": 100_000}]
    (bundle,) = simulate_many(state, [calls], threads=1, **options)
    (block,) = fastevm.simulate(state, calls, **options)
    outputs = (bundle.calls[0].output, block.calls[0].output)
    return str([[int.from_bytes(o[at : at + 32], "big") for at in (0, 32, 64)] for o in outputs])


def sends_no_value_in_static_calls() -> str:
    evm = EVM(state=STATE)
    text_of(lambda: evm.call(B, sender=A, static=True, value=4, commit=True))
    return str(evm.balance(B))


def estimates_authorizations() -> str:
    from eth_tester.exceptions import ValidationError

    from fastevm.integrations.eth_tester import Backend

    backend = Backend()
    call: dict[str, Any] = {
        "from": backend.get_accounts()[0], "to": B, "gas": 200_000, "data": b"", "value": 0,
    }  # fmt: skip
    names = ("chain_id", "address", "nonce", "y_parity", "r", "s")
    listed = [dict(zip(names, (1, A, 0, 0, 1, 1), strict=True))]
    more = backend.estimate_gas({**call, "authorization_list": listed}) - backend.estimate_gas(call)
    found = [more >= 25_000]  # PER_EMPTY_ACCOUNT_COST of EIP-7702
    for run in (backend.call, backend.estimate_gas):
        try:
            run({**call, "max_fee_per_gas": 10**9, "max_priority_fee_per_gas": 2 * 10**9})
        except ValidationError:
            found.append(True)
    return str(found)


def gives_the_reasons_of_revm() -> str:
    from fastevm.integrations.pyrevm import EVM as Machine
    from fastevm.integrations.pyrevm import AccountInfo

    found = []
    for code in ("00", "5f5ff3", "5fff"):
        evm = Machine()
        evm.insert_account_info("0x" + B.hex(), AccountInfo(code=bytes.fromhex(code)))
        evm.message_call("0x" + A.hex(), "0x" + B.hex())
        found.append(evm.result.reason)
    return " ".join(found)


class Bytes(bytes):
    """A subclass of bytes, like HexBytes."""


FORMS: tuple[Callable[[bytes], Any], ...] = (
    Bytes, bytearray, memoryview, lambda raw: "0x" + raw.hex(),
)  # fmt: skip


def takes_bytes_like_values() -> str:
    found = []
    for form in FORMS:
        evm: Any = EVM()
        evm.set_code(form(B), form(bytes.fromhex("5f355f5260205ff3")))
        output = evm.call(form(B), form((7).to_bytes(32, "big"))).output
        found.append(int.from_bytes(output, "big"))
    return str(found)


def takes_bytes_like_keys_hashes_and_slots() -> str:
    unsigned = fastevm.Transaction.build(to=B, gas_limit=21_000)
    senders, found = set(), []
    for form in FORMS:
        signed: Any = unsigned.sign(form(b"\x07" * 32))
        senders.add(fastevm.Transaction.decode(form(signed.raw)).sender)
        evm: Any = EVM(block_hashes=[form(b"\x01" * 32)], coinbase=form(A))
        evm.set_storage(B, form((5).to_bytes(32, "big")), 7)
        evm.set_code(B, "0x5f495f5260205ff3")  # BLOBHASH(0)
        output = evm.call(B, blob_hashes=[form(b"\x02" * 32)]).output
        found.append((evm.storage(B, 5), evm.block_hashes[0][0], output[0]))
    return f"{len(senders)} {set(found)} {len(found)}"


def pickles_results() -> str:
    results = list(simulate_many(STATE, [[{"from": A, "to": B, "value": 1}]] * 3, threads=1))
    again = pickle.loads(pickle.dumps(results))
    return f"{again == results} {[each.index for each in again]}"


def suggests_opcodes() -> str:
    opcodes: Any = ("SLOADD",)
    return text_of(lambda: Hooks(opcodes=opcodes))


POINT = {"name": "point", "type": "tuple", "components": [
    {"name": "x", "type": "int24"}, {"name": "y", "type": "uint160"}]}  # fmt: skip
COUNT = {"name": "count", "type": "uint256"}
ABI: list[dict[str, Any]] = [
    {"type": "function", "name": "same", "inputs": [POINT, COUNT], "outputs": [POINT, COUNT],
     "stateMutability": "pure"},
    {"type": "function", "name": "total", "inputs": [], "outputs": [COUNT],
     "stateMutability": "view"},
    {"type": "error", "name": "Refused", "inputs": [POINT]},
    {"type": "event", "name": "Placed", "inputs": [
        {"name": "owner", "type": "address", "indexed": True}, {**COUNT, "indexed": False}]},
]  # fmt: skip
ECHO = "0x60043603600460003760043603" + "6000f3"  # returns its calldata without the selector
WORD = (7).to_bytes(32, "big")


def with_code(code: str) -> Contract:
    evm = EVM()
    evm.set_code(B, code)
    return Contract(evm, ABI, B)


def reads_declarations() -> str:
    declared = [
        "struct Point { int24 x; uint160 y; }",
        "function same(Point point, uint256 count) pure returns (Point point, uint256 count)",
    ]
    made = fastevm.contract(declared).at(EVM(), B)
    return str(made.same.encode((-1, 2), 7) == with_code(ECHO).same.encode((-1, 2), 7))


def names_arguments_and_values() -> str:
    same = with_code(ECHO).same
    values = same(count=7, point={"x": -1, "y": 2})
    again = pickle.loads(pickle.dumps(same.call((-1, 2), 7)))
    assert same.encode((-1, 2), 7) == same.encode(count=7, point=(-1, 2))
    wrong = text_of(lambda: same((-1, 2), -7))
    return f"{values} {again == same.call((-1, 2), 7)} {again.value.point.x} / {wrong}"


def pickles_reverts_with_structs() -> str:
    data = fastevm.keccak256(b"Refused((int24,uint160))")[:4] + b"\xff" * 32 + WORD
    # 10 bytes of code copy `data`, which follows them, to memory and revert with it.
    failing = with_code(f"0x60{len(data):02x}600a5f3960{len(data):02x}5ffd" + data.hex())
    try:
        failing.total()
    except fastevm.ContractReverted as error:
        again = pickle.loads(pickle.dumps(error))
        return f"{again.error} {again.values} {str(again) == str(error)}"
    return "no error"


def finds_no_code() -> str:
    missing = Contract(EVM(), ABI, B)
    return text_of(missing.total)


def checks_results() -> str:
    failed = EVM().create("0xfe")
    return f"{bool(failed)} {text_of(failed.check)}"


def reads_events_as_values() -> str:
    topic = fastevm.keccak256(b"Placed(address,uint256)")
    # LOG2 with the word 7 as data
    code = f"0x60075f5273{A.hex()}7f{topic.hex()}60205fa2" + "00"
    made = with_code(code)
    (event,) = made.events_in(made.evm.call(B))
    columns = made.event_columns("Placed", made.evm.call(B))
    return f"{event.args.count} {event.args[1]} {event.args['count']} {columns['count']}"


def reads_sources_below_a_folder() -> str:
    item = {"abi": "[]", "bin": "6001", "bin-runtime": "6001", "srcmap-runtime": "2:1:0:-"}
    artifact = {"contracts": {"C.sol:C": item}, "sourceList": ["C.sol"]}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "C.sol").write_text("\n\nx\n")
        return str(fastevm.contract(artifact, root=folder).artifact.locations[0].line)


def takes_the_access_list_of_web3() -> str:
    evm = EVM()
    evm.set_code(B, "0x60055400")  # reads slot 5
    listed = [{"address": "0x" + B.hex(), "storageKeys": ["0x" + (5).to_bytes(32, "big").hex()]}]
    return str(evm.call(B).gas_used - evm.call(B, access_list=listed).gas_used)


def says_what_is_wrong_with_hex_text() -> str:
    evm: Any = EVM()
    wrong = ("0x123", "12", "0xA" + "a" * 39, "0x" + "zz" * 20)
    texts = [text_of(lambda text=text: evm.balance(text)) for text in wrong]
    parts = ("even number", "begins with 0x", "checksum", "not a hex digit")
    return str([part in text for part, text in zip(parts, texts, strict=True)])


def shows_signatures() -> str:
    shown = (EVM, EVM.set_block, EVM.transact, EVM.deploy)
    return str(["chain_id" in inspect.signature(each).parameters for each in shown])


def traces_a_signed_transaction() -> str:
    signed = fastevm.Transaction.build(
        to=B, value=3, gas_limit=21_000, max_fee_per_gas=1, chain_id=1
    ).sign(b"\x07" * 32)
    evm = EVM(base_fee=0)
    assert signed.sender is not None
    evm.set_balance(signed.sender, 10**18)
    result = evm.execute(signed, trace=("calls",), timeout=60)
    return str(result.trace["calls"]["value"])


def has_logs_in_columns() -> str:
    state = Layer.of({B: {"code": bytes.fromhex("602a5f52600760205fa100")}})  # LOG1 of 42
    (part,) = simulate_many(state, [[{"to": A}, {"to": B}]], threads=1, columns=True)
    topics = [[int.from_bytes(topic, "big") for topic in each] for each in part.log_topics]
    return (
        f"{[int(call) for call in part.log_call]} {topics} {[data[-1] for data in part.log_data]}"
    )


OUT_OF_TIME = "execution aborted (timeout = 0.05s)"


class Probe(NamedTuple):
    """A program, the text that it must return, and the package that it needs, if any."""

    run: Callable[[], str]
    expected: str
    package: str = ""


PROBES = (
    Probe(leaves_a_batch, "{0} None"),
    Probe(stops_at_its_limit, f"SimulationError: {OUT_OF_TIME} / {OUT_OF_TIME}"),
    Probe(stops_when_cancelled, "SimulationError: execution aborted"),
    Probe(cancels_tasks, "simulation batch stream"),
    Probe(traces_deep_calls, "1025 1025"),
    Probe(names_the_limit_of_steps_and_keeps_nothing, "True True True"),
    Probe(traces_deep_calls_over_a_node, "1025"),
    Probe(sends_typed_transactions, "[True, True, True] TypeError"),
    Probe(sends_lists_without_fee_caps, "25000 True True"),
    Probe(refuses_python_in_batches, "TypeError TypeError TypeError TypeError"),
    Probe(runs_in_the_named_block, "[[77, 1000, 9], [77, 1000, 9]]"),
    Probe(sends_no_value_in_static_calls, "0"),
    Probe(estimates_authorizations, "[True, True, True]", "eth_tester"),
    Probe(gives_the_reasons_of_revm, "Stop Return SelfDestruct"),
    Probe(takes_bytes_like_values, "[7, 7, 7, 7]"),
    Probe(takes_bytes_like_keys_hashes_and_slots, "1 {(7, 1, 2)} 4"),
    Probe(pickles_results, "True [0, 1, 2]"),
    Probe(reads_declarations, "True"),
    Probe(
        names_arguments_and_values,
        "Values(point=Values(x=-1, y=2), count=7) True -1 / "
        "AbiEncodingError: same: count: uint256: expected 0 to 2**256 - 1, found -7",
    ),
    Probe(pickles_reverts_with_structs, "Refused (Values(x=-1, y=7),) True"),
    Probe(
        finds_no_code,
        "NoCode: Contract.total: there is no code at 0xB0B0b0B0B0B0B0b0B0B0B0b0b0b0b0B0b0b0B0B0",
    ),
    Probe(checks_results, "False ExecutionFailed: invalid opcode"),
    Probe(reads_events_as_values, "7 7 7 [7]"),
    Probe(reads_sources_below_a_folder, "3"),
    Probe(takes_the_access_list_of_web3, "2000"),
    Probe(says_what_is_wrong_with_hex_text, "[True, True, True, True]"),
    Probe(shows_signatures, "[True, True, True, True]"),
    Probe(suggests_opcodes, "ValueError: unknown opcode 'SLOADD': did you mean 'SLOAD'?"),
    Probe(traces_a_signed_transaction, "0x3"),
    Probe(has_logs_in_columns, "[1] [[7]] [42]"),
)
