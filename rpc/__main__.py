"""``python -m rpc``: the same node as ``fastevm node``."""

import argparse
import sys

from rpc.command import add_arguments, run

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m rpc", description="A JSON-RPC node.")
    add_arguments(parser)
    sys.exit(run(parser.parse_args()))
