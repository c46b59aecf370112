"""``python -m fastevm.rpc`` starts the same node as ``fastevm node``."""

import sys

from fastevm.__main__ import main

if __name__ == "__main__":
    sys.argv.insert(1, "node")
    sys.exit(main())
