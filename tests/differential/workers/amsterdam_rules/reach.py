"""Counts how often the transcription applied each rule of Amsterdam."""

from typing import Final

# Rules by subject. S marks rules of April only, F rules of the final rule set only.
RULES: Final = {
    "opcodes": (
        "DUPN", "SWAPN", "EXCHANGE", "SLOTNUM", "immediate refused", "immediate behind the end",
        "stack too short for an immediate", "jump to the byte of an immediate",
    ),
    "state gas": (
        "transaction with a reservoir", "paid by the reservoir", "paid by both pots",
        "paid by gas", "not to be paid", "F given back to gas", "F given back to both pots",
        "F given back to the reservoir", "F gas repaid after a child",
        "F reverted child gives gas back", "F halted child burns what it took",
        "failed child leaves a reservoir", "F frame ends with less than nothing used",
        "S credited", "S credit waits for the caller", "S waiting credit is applied",
        "S fault: a credit is lost",
    ),
    "slots": (
        "new", "new within a call", "first change", "cleared", "no longer cleared",
        "restored to a value", "restored to zero", "gas below the sentry",
    ),
    "logs": (
        "of a transaction", "of a creation transaction", "of CALL", "of CREATE", "of SELFDESTRUCT",
        "value to itself", "S burn by SELFDESTRUCT", "S burn at the end",
    ),
    "delegations": (
        "authorization refused", "F pays for an account", "F pays for a first write",
        "F write paid before", "F pays for the delegation", "F delegation paid before",
        "S account exists", "cleared", "F gas ends among authorizations",
        "F gas ends at the recipient", "recipient delegates", "sender delegates and calls itself",
        "F delegate of the recipient is warm", "call of a delegation", "delegate is warm",
        "gas ends at the delegate", "delegate is a precompile",
    ),
    "calls": (
        "gas ends before the target is read", "value to nobody", "account not to be paid",
        "balance too low", "F account given back", "value in a static call",
    ),
    "creations": (
        "destination absent", "F destination has ether", "account not to be paid", "collision",
        "S collision by storage", "F storage is no collision", "balance too low",
        "nonce at its end", "init code too long", "init code above 48 KiB", "code begins with EF",
        "code too long", "code above 24 KiB", "longest code", "hash not to be paid",
        "bytes not to be paid", "failed", "transaction: new account", "F transaction: old account",
        "transaction: collision", "F transaction: account given back",
    ),
    "SELFDESTRUCT": (
        "beneficiary is nobody", "account not to be paid", "of a new contract",
        "F ether stays", "S state gas given back", "of a new contract with slots",
    ),
    "transactions": (
        "floor decides", "floor decides for the block alone", "floor with an access list",
        "refund", "refund of a fifth", "block counts before refunds", "intrinsic gas too low",
        "floor too high", "F gas limit above the total cap", "intrinsic gas above the cap",
        "init code too long", "no room for gas", "no room for state gas",
    ),
    "blocks": (
        "withdrawal", "withdrawal of nothing", "withdrawal requests", "consolidation requests",
        "F builder deposits", "F builder exits", "system contract fails", "access list too long",
        "more state gas than gas", "more gas than state gas",
    ),
    "access lists": (
        "account without changes", "slot read", "slot written and as before", "slot changed",
        "slot changed by two indices", "nonce", "balance", "code", "delegation cleared",
        "account gone", "coinbase earns nothing",
    ),
}  # fmt: skip
REACHED: Final = {f"{part}: {rule}": 0 for part, rules in RULES.items() for rule in rules}


def reach(rule: str, when: object = True) -> None:
    """Counts that a rule was applied, if ``when`` is true. The rule must be in `RULES`."""
    REACHED[rule] += bool(when)


def taken() -> dict[str, int]:
    """Returns the counts since the last call of `taken`, and resets them."""
    found = dict(REACHED)
    REACHED.update(dict.fromkeys(REACHED, 0))
    return found
