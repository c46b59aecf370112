"""``python -m examples.paid_api``: an API that charges for answers, and a page that buys them."""

import sys

from examples.extras import start

if __name__ == "__main__":
    sys.exit(start("examples.paid_api.command", "payments"))
