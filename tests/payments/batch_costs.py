"""Prints the gas per capture, alone and in batches: ``python -m tests.payments.batch_costs``.

Compares batches of orders from different payers with batches from one payer. The token has no
proxy.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any, Final

from eth_account import Account

from fastevm.payments import Kind, State
from fastevm.payments.contracts import artifact
from fastevm.payments.contracts.placing import place_contract
from fastevm.payments.erc6492 import MULTICALL
from tests.max_wait import MAX_WAIT

from .market import VALUE, Market, market

SIZES: Final = (1, 10, 50)


async def gas_of(stage: Market, size: int, run: int, *, one_payer: bool) -> float:
    """Captures ``size`` orders in one transaction. Returns the gas per order."""
    payers: list[Any] = [Account.create() for _ in range(1 if one_payer else size)]
    for payer in payers:
        stage.mint(payer.address, 100 * VALUE)
    merchant = stage.merchant(batch=max(size, 1))
    names = [f"order-{run}-{number}" for number in range(size)]
    for at, name in enumerate(names):
        who = payers[at % len(payers)]
        terms = stage.terms(payer=who.address)
        order = await merchant.draft(name, who.address, VALUE, kind=Kind.TRANSFER, terms=terms)
        await merchant.accept(name, stage.signed(order, who))
    await merchant.capture_many(names, until=State.CAPTURING)
    stage.mine()
    sent = set()
    for name in names:
        assert (await merchant.wait(name, State.PAID, MAX_WAIT)).paid
        sent |= {submission.transaction_hash for submission in await merchant.submissions(name)}
    (only,) = sent
    receipt = await merchant.node.call("eth_getTransactionReceipt", only)
    return int(receipt["gasUsed"], 16) / size


async def main() -> None:
    """Measures all batch sizes and prints a table."""
    with tempfile.TemporaryDirectory() as folder:
        stage = await market(Path(folder))
        try:
            code = artifact("Multicall").initcode()
            await place_contract(stage.client(), MULTICALL, code)
            # The shop's balance slot exists before the first capture, which would otherwise pay for
            # it.
            stage.mint(stage.shop.address, VALUE)
            run = 0
            for size in SIZES:
                found = []
                for one_payer in (False, True):
                    run += 1
                    found.append(await gas_of(stage, size, run, one_payer=one_payer))
                print(f"{size:>3} together: {found[0]:,.0f} gas each, of one payer {found[1]:,.0f}")
        finally:
            await stage.close()


if __name__ == "__main__":
    asyncio.run(main())
