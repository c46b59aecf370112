"""The command line: ``fastevm node`` and the commands around it."""

import argparse
import sys
from collections.abc import Sequence

from bench.options import add_arguments as add_bench_arguments
from fastevm import __version__
from fastevm.conformance import cli as conformance
from fastevm.errors import FastevmError
from fastevm.tools import simulate, statetest, t8n
from fastevm.tools.parser import Parser


def parser() -> Parser:
    """The parser of the whole command line."""
    top = Parser(
        prog="fastevm",
        description="The fastest EVM that Python can import, and a JSON-RPC node around it.",
    )
    top.add_argument("--version", action="version", version=f"fastevm {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    node = commands.add_parser(
        "node", help="start a JSON-RPC node (a development chain by default)"
    )
    node.set_defaults(run=run_node)
    add_node_arguments(node)
    tests = commands.add_parser(
        "conformance", help="run official tests against this build or a node"
    )
    tests.set_defaults(run=conformance.run)
    conformance.add_arguments(tests)
    single = commands.add_parser("statetest", help="run state tests one by one, with a trace")
    single.set_defaults(run=statetest.run)
    statetest.add_arguments(single)
    transition = commands.add_parser("t8n", help="run a block's transactions on a given state")
    transition.set_defaults(run=t8n.run)
    t8n.add_arguments(transition)
    what_if = commands.add_parser("simulate", help="run a payload of eth_simulateV1 on any state")
    what_if.set_defaults(run=simulate.run)
    simulate.add_arguments(what_if)
    timings = commands.add_parser("bench", help="time programs on this build and on its peers")
    timings.set_defaults(run=run_bench)
    add_bench_arguments(timings)
    return top


def add_node_arguments(node: argparse.ArgumentParser) -> None:
    """The node's own options belong to the node."""
    from rpc.command import add_arguments  # the node is loaded only when somebody wants it

    add_arguments(node)


def run_node(arguments: argparse.Namespace) -> int:
    """Start the node and serve until it is told to stop."""
    from rpc.command import run

    return run(arguments)


def run_bench(arguments: argparse.Namespace) -> int:
    """Time programs; nothing of it is loaded before."""
    from bench.command import run

    return run(arguments)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; 0 on success, 1 on failure, 2 on bad usage."""
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except (FastevmError, OSError) as error:
        print(f"fastevm: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
