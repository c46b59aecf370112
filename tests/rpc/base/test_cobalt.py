"""Tests the token functions that Cobalt adds, over JSON-RPC: scheduled multipliers, seizures."""

import pytest

from tests.rpc.base.chain import (
    ALLOWLIST,
    ALWAYS_ALLOW,
    BLOCKLIST,
    SEIZE,
    WAD,
    Base,
    forbids,
    topic_of,
    unauthorised,
)

HOUR = 3600
INTERFACES = ("01ffc9a7", "a60bf13d", "4bd27648", "d890fd71", "57854fc3")
UPDATED = "UIMultiplierUpdated(uint256,uint256,uint256)"
CANCELLED = "UIMultiplierUpdateCancelled(uint256,uint256)"
SCHEDULE = "updateUIMultiplier(uint256,uint256)"
SEIZE_CALL = "seizeWithMemo(address,address,uint256,bytes32)"
NO_MEMO = bytes(32)


@pytest.fixture
def cobalt(base: Base) -> Base:
    if not base.has_cobalt:
        pytest.skip("Beryl has neither scheduled multipliers nor seizures")
    return base


def test_scheduled_multipliers(cobalt: Base) -> None:
    base, owner = cobalt, cobalt.owner
    token = base.token()
    for interface in INTERFACES:
        known = bytes.fromhex(interface)
        assert base.read(token, "supportsInterface(bytes4)", "bool", known)
    assert not base.read(token, "supportsInterface(bytes4)", "bool", b"\xff" * 4)
    base.send(owner, token, "mint(address,uint256)", base.alice, 1000 * WAD)
    receipt = base.send(owner, token, "updateMultiplier(uint256)", 2 * WAD)
    assert receipt.events == [topic_of("MultiplierUpdated(uint256)"), topic_of(UPDATED)]
    for alias in ("uiMultiplier()", "multiplier()"):
        assert base.number(token, alias) == 2 * WAD
    doubled = base.number(token, "balanceOfUI(address)", base.alice)
    assert doubled == base.number(token, "scaledBalanceOf(address)", base.alice) == 2000 * WAD

    now = base.now()
    for wrong in (0, 2**128):
        assert base.refused(owner, token, SCHEDULE, wrong, now + HOUR) == ("InvalidMultiplier",)
    assert base.refused(owner, token, SCHEDULE, WAD, now) == ("EffectiveAtInPast", now)
    assert base.refused(owner, token, SCHEDULE, WAD, 2**64) == ("EffectiveAtTooFar", 2**64)
    at = now + HOUR
    receipt = base.send(owner, token, SCHEDULE, 3 * WAD, at)
    assert receipt.values(UPDATED) == (2 * WAD, 3 * WAD, at)
    assert base.number(token, "newUIMultiplier()") == 3 * WAD
    assert base.number(token, "effectiveAt()") == at
    assert base.number(token, "uiMultiplier()") == 2 * WAD
    second = base.refused(owner, token, SCHEDULE, 4 * WAD, at)
    assert second == ("UIMultiplierUpdateExists", at)
    receipt = base.send(owner, token, "cancelUIMultiplierUpdate()")
    assert receipt.values(CANCELLED) == (3 * WAD, at)
    assert base.number(token, "effectiveAt()") == 0
    again = base.refused(owner, token, "cancelUIMultiplierUpdate()")
    assert again == ("UIMultiplierUpdateDoesNotExist",)

    base.send(owner, token, SCHEDULE, 5 * WAD, at)
    receipt = base.send(owner, token, "updateMultiplier(uint256)", 6 * WAD)
    assert receipt.values(CANCELLED) == (5 * WAD, at)
    assert receipt.values("MultiplierUpdated(uint256)") == (6 * WAD,)
    assert receipt.values(UPDATED)[:2] == (2 * WAD, 6 * WAD)


def test_seizures(cobalt: Base) -> None:
    base, owner, user = cobalt, cobalt.owner, cobalt.user
    alice, bob, dave = base.alice, base.bob, base.dave
    token, zero = base.token(), "0x" + "00" * 20

    def error(source: str, receiver: str, *, sender: str = owner) -> tuple[object, ...]:
        return base.refused(sender, token, SEIZE_CALL, source, receiver, WAD, NO_MEMO)

    base.send(owner, token, "mint(address,uint256)", alice, 1000 * WAD)
    base.send(owner, token, "mint(address,uint256)", owner, 10 * WAD)
    base.gate(token, "SEIZE_EXEMPT", base.policy(BLOCKLIST, alice))
    receipt = base.send(owner, token, SEIZE_CALL, alice, bob, 400 * WAD, b"\2" * 32)
    assert receipt.events == [
        topic_of("Transfer(address,address,uint256)"),
        topic_of("Memo(address,bytes32)"),
        topic_of("Seized(address,address,address,uint256)"),
    ]
    assert base.balance(token, alice) == 600 * WAD
    assert base.balance(token, bob) == 400 * WAD
    assert base.number(token, "totalSupply()") == 1010 * WAD

    assert error(bob, alice) == ("AccountNotSeizable", bob)
    assert error(alice, bob, sender=user) == unauthorised(user, "SEIZE")
    assert error(alice, zero) == ("InvalidReceiver", zero)
    assert error(zero, bob) == ("InvalidSender", zero)
    assert error(alice, alice) == ("InvalidReceiver", alice)

    barred = base.policy(BLOCKLIST, bob)
    base.gate(token, "TRANSFER_RECEIVER", barred)
    transfer = base.refused(owner, token, "transfer(address,uint256)", bob, WAD)
    assert transfer == forbids("TRANSFER_RECEIVER", barred)
    base.send(owner, token, SEIZE_CALL, alice, bob, 100 * WAD, NO_MEMO)

    base.send(owner, token, "pause(uint8[])", [SEIZE])
    assert error(alice, bob) == ("ContractPaused", SEIZE)
    base.send(owner, token, "transfer(address,uint256)", dave, WAD)
    base.send(owner, token, "unpause(uint8[])", [SEIZE])

    base.send(owner, token, SEIZE_CALL, alice, dave, WAD, NO_MEMO)
    listed = base.policy(ALLOWLIST, bob)
    base.gate(token, "SEIZE_RECEIVER", listed)
    base.send(owner, token, SEIZE_CALL, alice, bob, WAD, NO_MEMO)
    assert error(alice, dave) == forbids("SEIZE_RECEIVER", listed)
    base.gate(token, "SEIZE_RECEIVER", ALWAYS_ALLOW)
    base.send(owner, token, SEIZE_CALL, alice, dave, WAD, NO_MEMO)
