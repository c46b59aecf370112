"""MkDocs hook: generates a page for each JSON-RPC namespace and an index of all methods."""

from __future__ import annotations

import inspect
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, Final

from fastevm.integrations.local_node import LocalNode, NodeError
from fastevm.rpc.dispatch.registry import METHODS, Method, Needs, Param, RunOn, namespace_of
from fastevm.rpc.errors import REASONS, Wire

FOLDER: Final = "reference/json-rpc"
SOURCES: Final = "../rpc/methods"  # relative to docs/; targets of the edit links
MAX_EXAMPLE: Final = 900  # characters of a response; longer responses are cut
PAYER: Final = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
PAYEE: Final = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
COUNTER: Final = "0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0"
CALL: Final = {"from": PAYER, "to": COUNTER}
TRANSACTION: Final = "TRANSACTION"  # placeholder for the hash of a mined transaction

PURPOSES: Final = {
    "eth": "State, calls, blocks, transactions, logs and subscriptions.",
    "net": "The network: id and peers.",
    "web3": "The client's version and Keccak-256.",
    "debug": "Traces in geth's formats, raw blocks, witnesses, storage ranges.",
    "trace": "Traces in the format of Parity.",
    "txpool": "The transactions that wait in the pool.",
    "ots": "The methods of the Otterscan block explorer.",
    "anvil": "Development controls with anvil's names.",
    "hardhat": "Development controls with Hardhat's names.",
    "evm": "Development controls with Ganache's names: mining, time, snapshots.",
    "personal": "Signing with the accounts of a development node.",
    "rpc": "The node's modules, limits and OpenRPC description.",
    "fastevm": "Extensions of fastevm.",
    "base": "Extensions of Base.",
    "optimism": "Extensions of OP-stack nodes.",
    "erigon": "Names of Erigon.",
    "miner": "Settings of geth's block builder.",
    "tenderly": "Development controls with Tenderly's names.",
    "testing": "Block building for official tests.",
}
"""What each namespace is for. A namespace without an entry fails the build."""

EXAMPLES: Final[dict[str, list[Any]]] = {
    "anvil_mine": ["0x2"],
    "anvil_setBalance": [PAYEE, "0xde0b6b3a7640000"],
    "anvil_setCode": [PAYEE, "0x00"],
    "anvil_setStorageAt": [COUNTER, "0x1", "0x" + "00" * 31 + "2a"],
    "debug_traceCall": [CALL, "latest", {"tracer": "callTracer"}],
    "debug_traceTransaction": [TRANSACTION, {"tracer": "callTracer"}],
    "eth_accounts": [],
    "eth_blockNumber": [],
    "eth_call": [CALL, "latest"],
    "eth_chainId": [],
    "eth_createAccessList": [CALL, "latest"],
    "eth_estimateGas": [CALL],
    "eth_feeHistory": ["0x1", "latest", [50]],
    "eth_gasPrice": [],
    "eth_getBalance": [PAYEE, "latest"],
    "eth_getBlockByNumber": ["latest", False],
    "eth_getCode": [COUNTER, "latest"],
    "eth_getLogs": [{"fromBlock": "earliest", "toBlock": "latest"}],
    "eth_getProof": [COUNTER, ["0x0"], "latest"],
    "eth_getStorageAt": [COUNTER, "0x0", "latest"],
    "eth_getTransactionByHash": [TRANSACTION],
    "eth_getTransactionCount": [PAYER, "latest"],
    "eth_getTransactionReceipt": [TRANSACTION],
    "eth_maxPriorityFeePerGas": [],
    "eth_sendTransaction": [CALL],
    "eth_simulateV1": [{"blockStateCalls": [{"calls": [CALL]}]}, "latest"],
    "eth_syncing": [],
    "evm_increaseTime": ["0xe10"],
    "evm_snapshot": [],
    "net_version": [],
    "rpc_limits": [],
    "trace_transaction": [TRANSACTION],
    "txpool_status": [],
    "web3_clientVersion": [],
}

Methods = dict[str, Method]


def namespaces() -> dict[str, Methods]:
    """The methods of each namespace, by the prefix of their names."""
    found: defaultdict[str, Methods] = defaultdict(dict)
    for name in sorted(METHODS):
        found[name.partition("_")[0]][name] = METHODS[name]
    return {space: found[space] for space in sorted(found, key=_rank)}


def _rank(space: str) -> tuple[int, str]:
    known = list(PURPOSES)
    return (known.index(space) if space in known else len(known), space)


# --- a method ---


def kind_of(param: Param) -> str:
    """The kind of a parameter, derived from the name of its decoder."""
    name = getattr(param.decode, "__name__", "value").removeprefix("decode_")
    return name.strip("_<>").replace("_", " ").replace("lambda", "value")


def names_of(method: Method) -> list[str]:
    """The parameter names in the handler's signature."""
    given = list(inspect.signature(method.handler).parameters)
    names = given[len(given) - len(method.params) :] if method.params else []
    return names + [f"p{at}" for at in range(len(names), len(method.params))]


def parameters(method: Method) -> list[str]:
    """The table of a method's parameters as Markdown lines."""
    if not method.params:
        return ["No parameters.", ""]
    lines = ["| parameter | kind | presence |", "|---|---|---|"]
    for name, param in zip(names_of(method), method.params, strict=True):
        optional = "optional"
        if param.required_by_interface:
            optional = "required in `preconf`, optional in `geth`"
        elif not param.optional:
            optional = "required"
        lines.append(f"| `{name}` | {kind_of(param)} | {optional} |")
    return [*lines, ""]


def example(node: LocalNode, name: str, mined: str) -> list[str]:
    """The example request and the response of a running node; empty if there is no example.

    Raises SystemExit if the node rejects the request.
    """
    if name not in EXAMPLES:
        return []
    params = [mined if value == TRANSACTION else value for value in EXAMPLES[name]]
    try:
        answer = node.request(name, params)
    except NodeError as error:
        raise SystemExit(f"docs: the node rejects the example of {name}: {error}") from None
    text = json.dumps(answer, indent=2)
    if len(text) > MAX_EXAMPLE:
        text = text[:MAX_EXAMPLE].rpartition("\n")[0] + "\n  ..."
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": name, "params": params})
    return [
        '```json title="Request"', body, "```", "",
        '```json title="Result"', text, "```", "",
    ]  # fmt: skip


def prose(text: str | None) -> str:
    """A docstring as Markdown."""
    return re.sub(r"``(.*?)``", r"`\1`", inspect.cleandoc(text or ""))


def first_sentence(method: Method) -> str:
    """The first sentence of a method's description, for a cell of a table."""
    text = " ".join(prose(method.handler.__doc__).split())
    return re.split(r"(?<=[.:;])\s", text, maxsplit=1)[0].rstrip(":;").replace("|", "\\|")


def notes(name: str, method: Method) -> str:
    """Restrictions of a method: transport, development chains, namespace; and its other names."""
    found = []
    if method.run_on is RunOn.SOCKET:
        found.append("over WebSocket and Unix sockets only")
    if method.needs is not Needs.NOTHING:
        found.append("development chains only")
    if namespace_of(name) != name.partition("_")[0]:
        found.append(f"namespace `{namespace_of(name)}` of `--api`")
    others = [f"`{other}`" for other in METHODS if other != name and same(METHODS[other], method)]
    if others:
        found.append("also named " + ", ".join(others))
    return "; ".join(found)


def same(method: Method, other: Method) -> bool:
    """Whether two names stand for one function."""
    item, two = inspect.unwrap(method.handler), inspect.unwrap(other.handler)
    return (item.__module__, item.__qualname__) == (two.__module__, two.__qualname__)


# --- pages ---


def namespace_page(space: str, methods: Methods, node: LocalNode, mined: str) -> str:
    """The page of a namespace."""
    lines = [f"# {space}", "", PURPOSES[space], ""]
    for name, method in methods.items():
        lines += [f"## {name}", "", prose(method.handler.__doc__), ""]
        lines += parameters(method)
        lines += [f"*{note[:1].upper() + note[1:]}.*", ""] if (note := notes(name, method)) else []
        lines += example(node, name, mined)
    return "\n".join(lines)


def index_page(spaces: dict[str, Methods]) -> str:
    """The page with the common rules and a table of all methods."""
    lines = [
        "# JSON-RPC", "",
        f"A node serves {len(METHODS)} methods over HTTP, WebSocket and Unix sockets. Parameters"
        " are positional. The results in the examples come from `fastevm dev`.", "",
        "| namespace | methods | purpose |", "|---|---|---|",
    ]  # fmt: skip
    for space, methods in spaces.items():
        lines.append(f"| [`{space}`]({space}.md) | {len(methods)} | {PURPOSES[space]} |")
    lines += [
        "", "`--api` selects the namespaces of a listener: see"
        " [running a public node](../../running-in-public.md). The two"
        " [dialects](../../concepts/dialects.md) differ in defaults and errors.", "",
        *errors(), "## Methods", "", "| method | description |", "|---|---|",
    ]  # fmt: skip
    for space, methods in spaces.items():
        lines += [
            f"| [`{name}`]({space}.md#{name.lower()}) | {first_sentence(method)} |"
            for name, method in methods.items()
        ]
    return "\n".join([*lines, ""])


def errors() -> list[str]:
    """The table of errors in both dialects."""
    lines = [
        "## Errors", "",
        "A code without a message is sent with the text of the specific error. Words in braces are"
        " placeholders.", "",
        "| reason | `preconf` | `geth` |", "|---|---|---|",
    ]  # fmt: skip

    def shown(wire: Wire) -> str:
        return f"{wire.code}" + (f" {wire.message}" if wire.message else "")

    for reason, row in REASONS.items():
        preconf, geth = shown(row.preconf), shown(row.geth)
        lines.append(f"| `{reason}` | {preconf} | {'the same' if geth == preconf else geth} |")
    return [*lines, ""]


def pages() -> dict[str, str]:
    """All pages by path."""
    spaces = namespaces()
    made = {f"{FOLDER}/index.md": index_page(spaces)}
    with LocalNode() as node:
        node.request("anvil_setCode", [COUNTER, "0x5f54600101805f555f5260205ff3"])
        mined = str(node.request("eth_sendTransaction", [CALL]))
        for space, methods in spaces.items():
            made[f"{FOLDER}/{space}.md"] = namespace_page(space, methods, node, mined)
    return made


def source_of(space: str) -> str:
    """The file that defines most methods of a namespace, relative to docs/."""
    modules = Counter(
        inspect.unwrap(method.handler).__module__.rpartition(".")[2]
        for method in namespaces().get(space, METHODS).values()
    )
    return f"{SOURCES}/{modules.most_common(1)[0][0]}.py"


def with_namespaces(items: Iterable[Any]) -> list[Any]:
    """The navigation with the pages of the namespaces below the index."""
    made: list[Any] = []
    for item in items:
        if isinstance(item, dict):
            ((title, target),) = item.items()
            if target == f"{FOLDER}/index.md":
                target = [{"Overview": target}, *({s: f"{FOLDER}/{s}.md"} for s in namespaces())]
            elif isinstance(target, list):
                target = with_namespaces(target)
            item = {title: target}
        made.append(item)
    return made


def on_config(config: Any) -> Any:
    """Adds the namespaces to the navigation."""
    config["nav"] = with_namespaces(config["nav"])
    return config


def on_files(files: Any, config: Any) -> Any:
    """Adds the pages to the site."""
    from mkdocs.structure.files import File

    for path, content in pages().items():
        made = File.generated(config, path, content=content)
        made.edit_uri = source_of(path.rpartition("/")[2].removesuffix(".md"))
        files.append(made)
    return files
