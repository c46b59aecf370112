"""MkDocs hook: generates the reference pages for JSON-RPC, the command line and metrics."""

from __future__ import annotations

import argparse
import inspect
import json
import re
import urllib.request
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from fastevm.cli.command_line import COMMANDS, parser
from fastevm.integrations.local_node import LocalNode, NodeError
from fastevm.rpc.dispatch.registry import METHODS, Method, Needs, Param, RunOn, namespace_of
from fastevm.rpc.errors import REASONS, Wire
from fastevm.rpc.limits import Limits

MAX_EXAMPLE = 900  # characters of a response; longer responses are cut
RUN_NOTES = {
    RunOn.SOCKET: "over WebSocket and Unix sockets only",
    RunOn.TASK: "waits without occupying a thread",
    RunOn.WORKER: "runs in a worker thread",
}
PAYER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
PAYEE = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
COUNTER = "0xc0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0c0"
CALL = {"from": PAYER, "to": COUNTER}
TRANSACTION = "TRANSACTION"  # placeholder for the hash of a mined transaction
EXAMPLES: dict[str, list[Any]] = {
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


# --- JSON-RPC ---


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
    lines = ["| parameter | kind | |", "|---|---|---|"]
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
    return ["```json", body, "```", "", "```json", text, "```", ""]


def prose(text: str | None) -> str:
    """A docstring as Markdown."""
    return re.sub(r"``(.*?)``", r"`\1`", inspect.cleandoc(text or ""))


def methods_page() -> str:
    """The page with every registered method."""
    lines = [
        "# JSON-RPC", "",
        f"{len(METHODS)} methods. Parameters are positional. The responses in the examples come"
        " from `fastevm dev`, run when this page was built.", "",
    ]  # fmt: skip
    spaces = defaultdict(list)
    for name, method in METHODS.items():
        spaces[name.partition("_")[0]].append((name, method))
    with LocalNode() as node:
        node.request("anvil_setCode", [COUNTER, "0x5f54600101805f555f5260205ff3"])
        mined = node.request("eth_sendTransaction", [CALL])
        for space in sorted(spaces):
            lines += [f"## {space}", ""]
            for name, method in sorted(spaces[space]):
                lines += [f"### {name}", "", prose(method.handler.__doc__), ""]
                lines += parameters(method)
                lines += [f"*{note}*", ""] if (note := notes(name, method)) else []
                lines += example(node, name, mined)
    return "\n".join([*lines, *errors()])


def notes(name: str, method: Method) -> str:
    """Restrictions of a method: transport, development chains, namespace."""
    found = [RUN_NOTES[method.run_on]] if method.run_on is RunOn.SOCKET else []
    if method.needs is not Needs.NOTHING:
        found.append("development chains only")
    if namespace_of(name) != name.partition("_")[0]:
        found.append(f"namespace `{namespace_of(name)}`")
    return "; ".join(found)


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


# --- command line ---


def command_page() -> str:
    """The page with every command and its options."""
    lines = ["# Command line", "", "`fastevm COMMAND --help` prints the same information.", ""]
    top = parser()
    commands = next(a for a in top._actions if isinstance(a, argparse._SubParsersAction))
    for name, command in COMMANDS.items():
        lines += [f"## fastevm {name}", "", f"{sentence(command.purpose)}", ""]
        subparser = commands.choices[name]
        command.fill(subparser)
        lines += options(subparser)
    return "\n".join(lines)


def sentence(text: str) -> str:
    """The text with an initial capital and a full stop."""
    return text[:1].upper() + text[1:].rstrip(".") + "."


def options(command: argparse.ArgumentParser) -> list[str]:
    """Tables of the options of a command by group, and of its subcommands."""
    lines: list[str] = []
    for group in command._action_groups:
        rows = [row for action in group._group_actions if (row := option(command, action))]
        if rows:
            title = group.title if group.title not in ("options", "positional arguments") else None
            lines += [f"**{title}**", ""] if title else []
            lines += ["| option | |", "|---|---|", *rows, ""]
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, subcommand in action.choices.items():
                lines += [f"### {subcommand.prog or name}", "", *options(subcommand)]
    return lines


def option(command: argparse.ArgumentParser, action: argparse.Action) -> str | None:
    """The table row of an option, or None if the option is hidden."""
    hidden = argparse.SUPPRESS in (action.help, action.dest) or action.dest == "help"
    if hidden or isinstance(action, argparse._SubParsersAction):
        return None
    formatter = command._get_formatter()
    words = ", ".join(action.option_strings) or formatter._format_args(action, action.dest)
    if action.option_strings and action.nargs != 0:
        words += " " + formatter._format_args(action, action.dest.upper())
    explanation = formatter._expand_help(action) if action.help else ""
    return f"| `{words}` | {escaped(explanation)} |".replace("\n", " ")


def escaped(text: str) -> str:
    """The text escaped for a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("<", "&lt;")


# --- metrics ---


def metrics_page() -> str:
    """The page with every metric of a node and every limit with its default."""
    with (
        LocalNode("node") as node,
        urllib.request.urlopen(node.listen() + "/metrics", timeout=10) as answer,
    ):
        text = answer.read().decode()
    kinds = sorted(re.findall(r"# TYPE (\S+) (\S+)", text))
    lines = [
        "# Metrics", "",
        "Every listener serves `/metrics` in the Prometheus text format. With `--metrics-listen`"
        " only that address serves it. Followers and nodes with a data directory have more"
        " metrics.", "",
        "| name | kind |", "|---|---|",
        *(f"| `{name}` | {kind} |" for name, kind in kinds), "",
        "## Limits", "",
        "`rpc_limits` returns the limits of a node. Sizes are in bytes, times in seconds.", "",
        "| limit | default |", "|---|---|",
    ]  # fmt: skip
    limits = Limits()
    for name in Limits.__slots__ if hasattr(Limits, "__slots__") else vars(limits):
        lines.append(f"| `{name}` | {getattr(limits, name):,} |")
    return "\n".join([*lines, ""])


PAGES: dict[str, Callable[[], str]] = {
    "reference/json-rpc.md": methods_page,
    "reference/command-line.md": command_page,
    "reference/metrics.md": metrics_page,
}


def on_files(files: Any, config: Any) -> Any:
    """Adds the generated pages to the site."""
    from mkdocs.structure.files import File

    for path, page in PAGES.items():
        files.append(File.generated(config, path, content=page()))
    return files
