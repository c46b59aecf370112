"""``python -m fastevm.rpc``: the same node as ``fastevm node``."""

import argparse
import sys

from fastevm.rpc.command import add_arguments, run

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m fastevm.rpc", description="A JSON-RPC node.")
    add_arguments(parser)
    sys.exit(run(parser.parse_args()))
