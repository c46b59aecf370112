"""Tests contracts as payers: deployed (ERC-1271), delegated (EIP-7702), undeployed (ERC-6492)."""

from typing import Any

from eth_account import Account
from eth_utils.address import to_checksum_address

from fastevm.payments import KeySigner, Kind, Terms, sign
from fastevm.payments.authorization import Authorization
from fastevm.payments.contracts import artifact
from fastevm.payments.contracts.placing import give_tokens, place_code, place_contract
from fastevm.payments.erc6492 import wrap
from fastevm.payments.x402 import Facilitator
from fastevm.payments.x402.messages import Json

from .street import FUNDS, PRICE, Street, now, read_payment, usdc

FACTORY = "0xFac7000000000000000000000000000000000001"


def factory() -> str:
    return str(to_checksum_address(FACTORY.lower()))


async def wallet_of(town: Street, owner: str) -> tuple[str, bytes]:
    """Returns the address of an undeployed wallet, and the call that creates it."""
    made = artifact("WalletFactory")
    await place_contract(town.client, factory(), made.initcode())
    call = {"to": factory(), "data": "0x" + made.encode("getAddress", owner, 5).hex()}
    answer = await town.client.call("eth_call", call, "pending")
    wallet = str(to_checksum_address("0x" + answer[-40:]))
    await give_tokens(town.client, usdc(), wallet, FUNDS)
    await town.client.call("evm_mine")
    return wallet, made.encode("createAccount", owner, 5)


def payload(town: Street, offer: Any, payer: str, key: Any) -> tuple[Json, bytes]:
    """Returns a payload signed by the wallet's only owner, with the signature."""
    terms = Terms(
        payer=payer, recipient=offer.pay_to, value=offer.amount, valid_after=0,
        valid_before=now() + 300,
    )  # fmt: skip
    made = Authorization(town.token.domain, terms, Kind.TRANSFER)
    signature = sign(made, key).secret_bytes
    return {"authorization": made.message(), "signature": "0x" + signature.hex()}, signature


async def settle(town: Street, message: Json, offer: Any, **rules: Any) -> Any:
    payment = read_payment(offer, message)
    async with Facilitator([town.settler(**rules)]) as facilitator:
        verified = await facilitator.verify(payment, offer)
        settled = await facilitator.settle(payment, offer)
    assert verified.reason == settled.reason
    return settled


async def test_a_wallet_that_is_not_there_yet_is_made_on_the_way(town: Street) -> None:
    offer, owner = town.offer(), town.payer
    wallet, call = await wallet_of(town, owner.address)
    message, inner = payload(town, offer, wallet, owner.key)
    wrapped = wrap(factory(), call, inner)
    message["signature"] = "0x" + wrapped.hex()
    before = await town.balance(town.shop.address)
    answer = await settle(town, message, offer)
    assert answer.reason == "eip6492_factory_not_allowed"
    answer = await settle(town, message, offer, factories=(factory(),))
    assert answer.success, answer
    assert await town.balance(town.shop.address) == before + PRICE
    # The wallet is deployed now, so only the inner signature counts.
    message, inner = payload(town, offer, wallet, owner.key)
    message["signature"] = "0x" + wrap(factory(), call, inner).hex()
    assert (await settle(town, message, offer)).success
    message, _ = payload(town, offer, wallet, owner.key)
    assert (await settle(town, message, offer)).success


async def test_a_delegated_account_is_a_wallet(town: Street) -> None:
    """The signature of the account's key counts only because the delegated code accepts it."""
    offer = town.offer()
    payer, owner = Account.create(), Account.create()
    wallet = "0x5701E05701E05701E05701e05701e05701E05702".lower()
    made = artifact("Wallet").initcode(owner.address)
    await place_contract(town.client, wallet, made)
    await place_code(town.client, payer.address, bytes.fromhex("ef0100" + wallet[2:]))
    await give_tokens(town.client, usdc(), payer.address, FUNDS)
    await town.client.call("evm_mine")
    message, _ = payload(town, offer, payer.address, payer.key)
    assert (await settle(town, message, offer)).reason == "invalid_exact_evm_signature"
    message, _ = payload(town, offer, payer.address, owner.key)
    assert (await settle(town, message, offer)).success


async def test_recovery_ids_of_some_wallets_are_put_right_for_keys(town: Street) -> None:
    offer = town.offer()
    message, signature = payload(town, offer, town.payer.address, town.payer.key)
    message["signature"] = "0x" + (signature[:64] + bytes([signature[64] - 27])).hex()
    assert (await settle(town, message, offer)).success
    assert KeySigner(town.payer.key).address == town.payer.address
