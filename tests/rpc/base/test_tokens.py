"""Tests Base's asset and stablecoin tokens over JSON-RPC under each fork (Base's smoke tests)."""

import secrets

from tests.rpc.base.chain import (
    ALLOWLIST,
    ALWAYS_ALLOW,
    ASSET,
    BLOCKLIST,
    FACTORY,
    PANIC_OVERFLOW,
    STABLECOIN,
    TRANSFER,
    WAD,
    Base,
    call_data,
    forbids,
    topic_of,
    unauthorised,
)

TRANSFERRED = topic_of("Transfer(address,address,uint256)")
MEMO = topic_of("Memo(address,bytes32)")
DOLLAR = 10**6
ANNOUNCE = "announce(bytes[],string,string,string)"


def test_the_factory(base: Base) -> None:
    address, initialized = "getB20Address(uint8,address,bytes32)", "isB20Initialized(address)"
    for variant in (ASSET, STABLECOIN):
        salt = secrets.token_bytes(32)
        token = base.read(FACTORY, address, "address", variant, base.owner, salt)
        assert base.read(FACTORY, "isB20(address)", "bool", token)
        assert not base.read(FACTORY, initialized, "bool", token)
        assert base.create(variant, salt) == token
        assert base.read(FACTORY, initialized, "bool", token)
        again = base.revert(FACTORY, base.creation(variant, salt), **{"from": base.owner})
        assert again == ("TokenAlreadyExists", token)
    assert not base.read(FACTORY, "isB20(address)", "bool", base.alice)


def test_what_the_factory_refuses(base: Base) -> None:
    def error(variant: int, **terms: object) -> tuple[object, ...]:
        data = base.creation(variant, secrets.token_bytes(32), **terms)  # type: ignore[arg-type]
        return base.revert(FACTORY, data, **{"from": base.owner})

    assert error(ASSET, decimals=5) == ("InvalidDecimals", 5)
    assert error(ASSET, decimals=19) == ("InvalidDecimals", 19)
    assert error(STABLECOIN, currency="usd") == ("InvalidCurrency", "usd")
    assert error(STABLECOIN, currency="") == ("MissingRequiredField", "currency")
    data = base.creation(ASSET, bytes(32))
    unknown = data[:4] + (2).to_bytes(32, "big") + data[36:]
    assert base.rejects(FACTORY, unknown)


def test_the_life_of_an_asset(base: Base) -> None:
    token, owner, user, alice, bob = base.token(), base.owner, base.user, base.alice, base.bob

    def amount(holder: str) -> float:
        return base.balance(token, holder) / WAD

    base.send(owner, token, "mint(address,uint256)", alice, 1000 * WAD)
    base.send(owner, token, "mint(address,uint256)", owner, 500 * WAD)
    base.send(owner, token, "transfer(address,uint256)", bob, 200 * WAD)
    assert (amount(bob), amount(owner)) == (200, 300)
    with_memo = "transferWithMemo(address,uint256,bytes32)"
    receipt = base.send(owner, token, with_memo, bob, WAD, b"\1" * 32)
    assert receipt.events == [TRANSFERRED, MEMO]
    base.send(owner, token, "approve(address,uint256)", user, 50 * WAD)
    base.send(user, token, "transferFrom(address,address,uint256)", owner, bob, 50 * WAD)
    assert base.number(token, "allowance(address,address)", owner, user) == 0
    assert amount(bob) == 251

    mints = call_data("batchMint(address[],uint256[])", [alice, bob], [10 * WAD, 20 * WAD])
    base.send(owner, token, ANNOUNCE, [mints], "smoke-batch-1", "", "")
    assert base.read(token, "isAnnouncementIdUsed(string)", "bool", "smoke-batch-1")
    assert (amount(alice), amount(bob)) == (1010, 271)
    doubling = call_data("updateMultiplier(uint256)", 2 * WAD)
    base.send(owner, token, ANNOUNCE, [doubling], "smoke-multiplier-1", "", "")
    assert base.number(token, "multiplier()") == 2 * WAD
    raw = base.balance(token, alice)
    assert base.number(token, "scaledBalanceOf(address)", alice) == 2 * raw
    scaled = base.number(token, "toScaledBalance(uint256)", raw + 1)
    assert abs(base.number(token, "toRawBalance(uint256)", scaled) - raw - 1) <= 1

    for value in ("rwa", ""):
        base.send(owner, token, "updateExtraMetadata(string,string)", "category", value)
        assert base.read(token, "extraMetadata(string)", "string", "category") == value
    base.send(owner, token, "updateName(string)", "Renamed")
    base.send(owner, token, "updateSymbol(string)", "REN")
    assert base.read(token, "name()", "string") == "Renamed"
    assert base.read(token, "symbol()", "string") == "REN"
    base.send(owner, token, "burn(uint256)", 100 * WAD)
    assert base.number(token, "totalSupply()") == 1430 * WAD

    used = base.refused(owner, token, ANNOUNCE, [], "smoke-batch-1", "", "")
    assert used == ("AnnouncementIdAlreadyUsed", "smoke-batch-1")
    overflow = call_data("toScaledBalance(uint256)", 2**256 - 1)
    panic = base.refused(owner, token, ANNOUNCE, [overflow], "smoke-panic", "", "")
    assert panic == PANIC_OVERFLOW
    failed = base.submit(owner, token, call_data(ANNOUNCE, [overflow], "smoke-panic", "", ""))
    assert failed.fields["status"] == "0x0"
    assert not base.read(token, "isAnnouncementIdUsed(string)", "bool", "smoke-panic")


def test_the_executor_of_a_transfer(base: Base) -> None:
    token, owner, user, bob = base.token(), base.owner, base.user, base.bob
    for holder in (owner, user):
        base.send(owner, token, "mint(address,uint256)", holder, 10 * WAD)
    policy = base.policy(ALLOWLIST, owner)
    base.gate(token, "TRANSFER_EXECUTOR", policy)
    transfer, with_memo = "transfer(address,uint256)", "transferWithMemo(address,uint256,bytes32)"
    base.send(owner, token, transfer, bob, WAD)
    base.send(owner, token, with_memo, bob, WAD, bytes(32))
    if base.has_denim:
        wanted = forbids("TRANSFER_EXECUTOR", policy)
        assert base.refused(user, token, transfer, bob, WAD) == wanted
        assert base.refused(user, token, with_memo, bob, WAD, bytes(32)) == wanted
    else:  # before Denim, this policy does not apply to a holder's own transfer
        base.send(user, token, transfer, bob, WAD)
    base.send(owner, token, "approve(address,uint256)", user, WAD)
    spend = base.refused(user, token, "transferFrom(address,address,uint256)", owner, bob, WAD)
    assert spend == forbids("TRANSFER_EXECUTOR", policy)
    base.gate(token, "TRANSFER_EXECUTOR", ALWAYS_ALLOW)
    base.send(user, token, transfer, bob, WAD)


def test_the_limits_of_an_asset(base: Base) -> None:
    token, owner, user, bob = base.token(), base.owner, base.user, base.bob
    transfer, mint = "transfer(address,uint256)", "mint(address,uint256)"
    spend = "transferFrom(address,address,uint256)"
    base.send(owner, token, mint, owner, 10 * WAD)
    base.send(owner, token, "updateSupplyCap(uint256)", 10 * WAD)
    too_many = base.refused(owner, token, mint, bob, 1)
    assert too_many == ("SupplyCapExceeded", 10 * WAD, 10 * WAD + 1)
    base.send(owner, token, "updateSupplyCap(uint256)", 100 * WAD)
    assert base.refused(user, token, transfer, bob, 1) == ("InsufficientBalance", user, 0, 1)
    lacking = base.refused(user, token, spend, owner, bob, 1)
    assert lacking == ("InsufficientAllowance", user, 0, 1)
    assert base.refused(user, token, mint, bob, 1) == unauthorised(user, "MINT")
    if base.has_denim:
        base.send(owner, token, "approve(address,uint256)", user, WAD)
        wanted = ("InvalidReceiver", token)
        assert base.refused(owner, token, transfer, token, 1) == wanted
        assert base.refused(user, token, spend, owner, token, 1) == wanted
        assert base.refused(owner, token, mint, token, 1) == wanted
        batch = base.refused(owner, token, "batchMint(address[],uint256[])", [bob, token], [1, 1])
        assert batch == wanted
    base.send(owner, token, "pause(uint8[])", [TRANSFER])
    assert base.refused(owner, token, transfer, bob, 1) == ("ContractPaused", TRANSFER)
    memo = "transferWithMemo(address,uint256,bytes32)"
    assert base.refused(owner, token, memo, bob, 1, bytes(32)) == ("ContractPaused", TRANSFER)
    base.send(owner, token, "unpause(uint8[])", [TRANSFER])
    base.send(owner, token, transfer, bob, WAD)
    assert base.balance(token, bob) == WAD


def test_the_life_of_a_stablecoin(base: Base) -> None:
    token, owner, user = base.token(STABLECOIN), base.owner, base.user
    alice, bob = base.alice, base.bob
    assert base.read(token, "currency()", "string") == "USD"
    assert base.number(token, "decimals()") == 6
    base.send(owner, token, "mint(address,uint256)", alice, 1000 * DOLLAR)
    base.send(owner, token, "mint(address,uint256)", owner, 500 * DOLLAR)
    base.send(owner, token, "transfer(address,uint256)", bob, 200 * DOLLAR)
    base.gate(token, "TRANSFER_SENDER", base.policy(BLOCKLIST, alice))
    burned = base.send(owner, token, "burnBlocked(address,uint256)", alice, 400 * DOLLAR)
    blocked = topic_of("BurnedBlocked(address,address,uint256)")
    assert burned.events == [TRANSFERRED, blocked]
    assert base.balance(token, alice) == 600 * DOLLAR
    assert base.number(token, "totalSupply()") == 1100 * DOLLAR
    free = base.refused(owner, token, "burnBlocked(address,uint256)", bob, 1)
    assert free == ("AccountNotBlocked", bob)
    denied = base.refused(user, token, "mint(address,uint256)", bob, 1)
    assert denied == unauthorised(user, "MINT")
