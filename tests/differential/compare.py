"""Finds where two outcomes of a case differ."""

from typing import Any

PARTS = ("nonce", "balance", "code", "storage")
ASPECTS = ("status", "gas_used", "block_gas", "refunded", "output", "logs")


def difference(ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    """Describes the first difference, or returns None.

    Compares only values that both outcomes have.
    """
    if "failure" in theirs:
        return f"the peer failed: {theirs['failure']}"
    pairs = zip(ours["transactions"], theirs["transactions"], strict=True)
    for number, (our, their) in enumerate(pairs):
        for aspect in ASPECTS:
            if aspect in our and aspect in their and our[aspect] != their[aspect]:
                return (
                    f"transaction {number}: {aspect} is {our[aspect]} ({our.get('reason')}), "
                    f"the peer's {their[aspect]} ({their.get('reason')})"
                )
    if "state" in theirs and ours["state"] != theirs["state"]:
        return state_difference(ours["state"], theirs["state"])
    found = account_difference(ours["state"], theirs.get("accounts", {}))
    if found:
        return found
    if theirs.get("root", ours["root"]) != ours["root"]:
        return f"root is {ours['root']}, the peer's {theirs['root']}"
    return None


def state_difference(ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    """Describes the first account that differs between two complete states."""
    for address in sorted(ours.keys() | theirs.keys()):
        our, their = ours.get(address), theirs.get(address)
        if our is None or their is None:
            return f"account {address} is {our}, the peer's {their}"
        for name, item, other in zip(PARTS, our, their, strict=True):
            if item != other:
                return f"{name} of {address} is {item}, the peer's {other}"
    return "accounts in another order"


def account_difference(ours: dict[str, Any], theirs: dict[str, Any]) -> str | None:
    """Describes the first difference in accounts. Compares only what the peer reports."""
    for address, parts in theirs.items():
        account = ours.get(address, [0, 0, "0x", {}])
        for name, their in parts.items():
            our = account[PARTS.index(name)]
            if name == "storage":
                our = {slot: our.get(slot, 0) for slot in their}
            if our != their:
                return f"{name} of {address} is {our}, the peer's {their}"
    return None
