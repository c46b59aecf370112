"""Tests how tokens are read from their contracts, and the table of known tokens."""

import pytest
from eth_utils.address import is_checksum_address

from fastevm.payments import KNOWN, Domain, InvalidTerms, Kind, Token, WrongToken
from fastevm.payments.contracts import artifact
from fastevm.payments.contracts.placing import place_token, write_slot

from .market import Market

# Published domain separators, which the contracts return.
SEPARATORS = {
    (8453, "USDC"): "02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f",
    (84532, "USDC"): "71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818",
    (1, "USDC"): "06c37168a7db5138defc7866392bb87a741f9b3d104deb5094588ce041cae335",
    (10, "USDC"): "26d9c34bb1a1c312f69c53b2d93b8be20faafba63af2438c6811713c9b1f933f",
    (137, "USDC"): "caa2ce1a5703ccbe253a34eb3166df60a705c561b44b192061e28f2a985be2ca",
    (42161, "USDC"): "08d11903f8419e68b1b8721bcbe2e9fc68569122a77ef18c216f10b3b5112c78",
    (43114, "USDC"): "bbea200329a938bc3438984a49cb0732e66d66d7bd59c127abacc1710e77f7b3",
    (143, "USDC"): "fe22123edc0dd4aeb912eb7948c5f0e531592c2053b3067612f427db342c93c6",
    (42220, "USDC"): "b2ce31d2838445fa765a491f550e7c78ac7280ab0f3bc9d6063a86df9c3fb578",
    (1329, "USDC"): "0a19136106ae98d2c245cbbd451f3cb2bbbb1670e1ee191abacb5a5e255c0255",
    (480, "USDC"): "936533d5f85622a8261854e20bb87f4e849dde486f429bc1fb66202b7cde09ec",
    (999, "USDC"): "70a72998ad787d1a9152a8f88ccfe0766b1cb293b6b4011b34523035da10b0a3",
    (130, "USDC"): "565b4c4095d739dada6adeb9a89bc6dc4d102500ebd4a88bef1ec1d0f69d83b8",
    (146, "USDC"): "47ff53f4cb866f027068ac56dedd98f6818c3ea4f1f60a1850d746944543ac12",
    (80002, "USDC"): "5cddc98319864e897e4469bd1d13c2288c677047b54b8cca12bd342adb6be9eb",
    (8453, "EURC"): "ec4dcbded0afd42599589b79220899bbe000bb5ea66d6f1bc176e78d094203bb",
    (1, "EURC"): "99f188f447f0c6eaf68589359cd2ead8c2faaaaee984ab926fdb734d0040073b",
    (43114, "EURC"): "094e957ad84a5711a2d13ea2ddcfe3947fe1704472f07bf8a49718f55a65f4b1",
}
PLACE = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"


def test_the_table_gives_the_published_domains() -> None:
    rows = {(row.chain_id, row.symbol): row for row in KNOWN}
    assert len(rows) == len(KNOWN)
    for place, separator in SEPARATORS.items():
        row = rows[place]
        assert is_checksum_address(row.address)
        domain = Domain(row.name, row.version, row.chain_id, row.address)
        assert domain.separator.hex() == separator, place


async def test_a_token_is_read_from_its_contract(still: Market) -> None:
    token = await Token.of(still.client(), still.token.token)
    assert token.domain == still.token
    assert (token.symbol, token.decimals, token.long_signatures) == ("USDC", 6, True)
    assert token.units("12.50") == 12_500_000 and token.text(12_500_000) == "12.50 USDC"
    assert token.text(1_234_567_890_123) == "1,234,567.890123 USDC"
    for wrong in ("0.0000001", "-1", "x", 1.5, True):
        with pytest.raises(InvalidTerms):
            token.units(wrong)  # type: ignore[arg-type]


async def test_what_is_no_such_token_is_refused(still: Market) -> None:
    client = still.client()
    wallet = still.deploy("Wallet", still.shop.address)
    for place in (still.payer.address, wallet):
        with pytest.raises(WrongToken):
            await Token.of(client, place)
    payout = still.deploy("Payout", still.token.token)
    with pytest.raises(WrongToken, match="neither EIP-3009 nor transfers with memos"):
        await Token.of(client, payout)


async def test_a_token_says_how_payers_can_pay(still: Market) -> None:
    memo = still.deploy("MemoToken", "Memo Dollar", "MUSD", 6, still.admin.address)
    client = still.client()
    assert (await Token.of(client, still.token.token)).kinds == (Kind.RECEIVE, Kind.TRANSFER)
    found = await Token.of(client, memo)
    assert found.kinds == (Kind.PERMIT, Kind.MEMO) and not found.long_signatures
    pause = artifact("MemoToken").encode("setPaused", 0, True)
    still.send(still.admin, memo, pause)
    assert (await Token.of(client, memo)).kinds == (Kind.PERMIT, Kind.MEMO)


async def test_a_token_whose_name_is_not_the_tables_is_refused(still: Market) -> None:
    client, admin = still.client(), still.admin.address
    await place_token(client, PLACE, name="USD Coin", symbol="USDC", decimals=6, admin=admin)
    still.mine()
    assert (await Token.of(client, PLACE)).domain.name == "USD Coin"  # no known token of this chain
    await write_slot(client, PLACE, 4, int.from_bytes(b"Dollar".ljust(32, b"\0")) | 12)
    still.mine()
    # Reads name and domain separator again: the separator depends on the name.
    assert (await Token.of(client, PLACE)).domain.name == "Dollar"
