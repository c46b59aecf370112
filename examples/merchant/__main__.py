"""``python -m examples.merchant``: starts a node, deploys a token, and serves a shop's pages."""

import sys

from examples.extras import start

if __name__ == "__main__":
    sys.exit(start("examples.merchant.command", "payments"))
