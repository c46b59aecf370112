"""``fastevm pay collector``: deploys the permit collector of a shop, or shows that it exists."""

import argparse

from fastevm.payments.commands.shared import acting, add_node
from fastevm.payments.merchant import Merchant


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options."""
    add_node(parser)


def run(arguments: argparse.Namespace) -> int:
    """Deploys the collector if it is missing, and prints its address. Returns 1 if that failed."""

    async def act(merchant: Merchant) -> tuple[str, bool]:
        collector = await merchant.deploy_collector()
        code = await merchant.node.call("eth_getCode", collector, "pending")
        pays = f"it pays {merchant.recipient} and obeys {merchant.route.account}"
        if code == "0x":
            return f"{collector} is not deployed yet: run the command again", False
        return f"{collector} is deployed: {pays}", True

    return acting(arguments, act, create=arguments.shop is not None)
