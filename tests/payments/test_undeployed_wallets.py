"""Tests an undeployed wallet as payer (ERC-6492): with TRANSFER, and with a hold in the escrow."""

import pytest
from eth_utils.address import to_checksum_address

from fastevm.payments import HoldTerms, Kind, Merchant, Order, Reason, SignatureRefused, State
from fastevm.payments.contracts import artifact
from fastevm.payments.contracts.placing import place_escrow
from fastevm.payments.erc6492 import MULTICALL, wrap
from fastevm.payments.escrow import V1_1
from tests.max_wait import MAX_WAIT

from .market import VALUE, Market

STORE = "0x5701E05701E05701E05701e05701e05701E05701"


class Stage:
    """A factory, a wallet that is not deployed yet, and a merchant that allows the factory."""

    def __init__(self, market: Market) -> None:
        self.market, self.factory, self.wallet = market, "", ""

    async def open(self) -> Merchant:
        """Deploys all contracts except the wallet. Gives the wallet's address tokens."""
        market, made = self.market, artifact("WalletFactory")
        await place_escrow(market.client(), V1_1, STORE, MULTICALL)
        self.factory = market.deploy("WalletFactory")
        call = {"to": self.factory, "data": "0x" + made.encode("getAddress", self.owner, 5).hex()}
        answer = await market.client().call("eth_call", call, "latest")
        self.wallet = str(to_checksum_address("0x" + answer[-40:]))
        market.mint(self.wallet, VALUE)
        merchant = market.merchant()
        merchant.factories = frozenset([self.factory])
        return merchant

    @property
    def owner(self) -> str:
        """Returns the owner whose key signs for the wallet."""
        return str(self.market.payer.address)

    def signed(self, order: Order, key: object = None, factory: str = "") -> bytes:
        """Returns the wallet's ERC-6492 signature of an order."""
        inner = self.market.signed(order, key).secret_bytes
        call = artifact("WalletFactory").encode("createAccount", self.owner, 5)
        return wrap(factory or self.factory, call, inner)

    async def code(self) -> str:
        """Returns the code at the wallet's address."""
        return str(await self.market.client().call("eth_getCode", self.wallet, "latest"))


async def test_a_wallet_is_made_by_the_capture_that_it_pays(still: Market) -> None:
    stage = Stage(still)
    merchant = await stage.open()
    order = await merchant.draft("order-1", stage.wallet, VALUE, kind=Kind.TRANSFER)
    for wrong in (stage.signed(order, still.stranger), stage.signed(order, factory=MULTICALL)):
        with pytest.raises(SignatureRefused) as refused:
            await merchant.accept("order-1", wrong)
        assert refused.value.reason is Reason.SIGNATURE_SIGNER
    await merchant.accept("order-1", stage.signed(order))
    assert await stage.code() == "0x"
    (report,) = await merchant.check()
    assert report.ok, report.summary
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid
    assert await stage.code() != "0x"


async def test_one_that_somebody_made_meanwhile_pays_too(still: Market) -> None:
    stage = Stage(still)
    merchant = await stage.open()
    order = await merchant.draft("order-1", stage.wallet, VALUE, kind=Kind.TRANSFER)
    await merchant.accept("order-1", stage.signed(order))
    made = artifact("WalletFactory").encode("createAccount", stage.owner, 5)
    still.send(still.stranger, stage.factory, made)
    await merchant.capture("order-1", until=State.CAPTURING)
    still.mine()
    assert (await merchant.wait("order-1", State.PAID, MAX_WAIT)).paid


async def test_a_wallet_pays_into_a_hold_and_not_by_receive(still: Market) -> None:
    stage = Stage(still)
    merchant = await stage.open()
    order = await merchant.draft("order-1", stage.wallet, VALUE)
    with pytest.raises(SignatureRefused, match="TRANSFER"):
        await merchant.accept("order-1", stage.signed(order))
    order = await merchant.draft("order-2", stage.wallet, VALUE, hold=HoldTerms())
    await merchant.accept("order-2", stage.signed(order))
    await merchant.hold("order-2", timeout=0)
    still.mine()
    assert (await merchant.hold("order-2", timeout=MAX_WAIT)).state is State.HELD
