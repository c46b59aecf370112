"""Tests the EIP-3009 token against the deployed tokens: order of checks, reasons, events, slots."""

from collections.abc import Callable
from typing import Any

import pytest

from fastevm import EVM, ExecutionResult, keccak256
from fastevm.payments.contracts import artifact

from . import circle
from .contract_world import (
    ADMIN,
    CHAIN_ID,
    HALF_ORDER,
    MERCHANT,
    NONCE,
    NOW,
    ORDER,
    PAYER,
    STRANGER,
    VALID_AFTER,
    VALID_BEFORE,
    ZERO,
    Deployed,
    chain,
    circles_dollar,
    deployed,
    dollar,
    order,
    signature,
    split,
    terms,
    typed_data,
)

RECEIVE = "ReceiveWithAuthorization"
TRANSFER = "TransferWithAuthorization"
USED = "FiatTokenV2: authorization is used or canceled"


@pytest.fixture(params=["ours", pytest.param("circle's", marks=circle.installed)])
def token(request: pytest.FixtureRequest) -> Deployed:
    """Provides this project's token, then Circle's token. Every test must pass with both."""
    return dollar(chain()) if request.param == "ours" else circles_dollar(chain())


def function_of(kind: str) -> str:
    return kind[0].lower() + kind[1:]


def move(
    token: Deployed,
    kind: str = RECEIVE,
    *,
    sender: str = MERCHANT.address,
    signed: bytes | None = None,
    form: str = "bytes",
    **changes: Any,
) -> ExecutionResult:
    """Submits the payer's authorization.

    ``changes`` replace members of its terms. ``signed`` is used instead of a valid signature.
    """
    message = terms(**changes)
    packed = signature(typed_data(token.address, kind, message)) if signed is None else signed
    last = split(packed) if form == "vrs" else (packed,)
    return token.send(function_of(kind), *order(message), *last, sender=sender)


def cancel(
    token: Deployed, *, signer: Any = PAYER, form: str = "bytes", signed: bytes | None = None
) -> ExecutionResult:
    message = {"authorizer": PAYER.address, "nonce": NONCE}
    data = typed_data(token.address, "CancelAuthorization", message)
    packed = signature(data, signer) if signed is None else signed
    last = split(packed) if form == "vrs" else (packed,)
    sender = STRANGER.address  # anybody may submit a cancellation
    return token.send("cancelAuthorization", PAYER.address, NONCE, *last, sender=sender)


def reason(result: ExecutionResult) -> str:
    assert not result.success
    found = artifact("Token").decode_error(result.output)
    assert found is not None and found.name == "Error"
    assert isinstance(found.arguments["reason"], str)
    return found.arguments["reason"]


@pytest.mark.parametrize("form", ["bytes", "vrs"])
@pytest.mark.parametrize("kind", [TRANSFER, RECEIVE])
def test_an_authorization_moves_the_exact_amount_and_logs_its_use_first(
    token: Deployed, kind: str, form: str
) -> None:
    assert token.read("authorizationState", PAYER.address, NONCE) is False
    events = token.events(move(token, kind, form=form, value=4_000_000))
    assert [event and event.name for event in events] == ["AuthorizationUsed", "Transfer"]
    used, moved = events
    assert used and used.arguments == {"authorizer": PAYER.address.lower(), "nonce": NONCE}
    assert moved and moved.arguments["value"] == 4_000_000
    assert token.read("balanceOf", PAYER.address) == 6_000_000
    assert token.read("balanceOf", MERCHANT.address) == 4_000_000
    assert token.read("authorizationState", PAYER.address, NONCE) is True


def test_anyone_submits_a_transfer_and_only_the_payee_a_receipt(token: Deployed) -> None:
    assert reason(move(token, sender=STRANGER.address)) == "FiatTokenV2: caller must be the payee"
    assert move(token, TRANSFER, sender=STRANGER.address).success


def test_a_signature_for_one_function_does_not_serve_the_other(token: Deployed) -> None:
    signed = signature(typed_data(token.address, TRANSFER, terms()))
    assert reason(move(token, RECEIVE, signed=signed)) == "FiatTokenV2: invalid signature"
    signed = signature(typed_data(token.address, RECEIVE, terms()))
    assert reason(move(token, TRANSFER, signed=signed)) == "FiatTokenV2: invalid signature"


@pytest.mark.parametrize(
    "domain",
    [
        {"name": "USDC"},
        {"version": "1"},
        {"chainId": CHAIN_ID + 1},
        {"verifyingContract": ADMIN},
    ],
)
def test_a_signature_for_another_domain_is_invalid(token: Deployed, domain: Any) -> None:
    signed = signature(typed_data(token.address, RECEIVE, terms(), **domain))
    assert reason(move(token, signed=signed)) == "FiatTokenV2: invalid signature"


def test_a_changed_term_or_another_signer_is_invalid(token: Deployed) -> None:
    signed = signature(typed_data(token.address, RECEIVE, terms(value=1)))
    assert reason(move(token, signed=signed, value=2)) == "FiatTokenV2: invalid signature"
    signed = signature(typed_data(token.address, RECEIVE, terms()), STRANGER)
    assert reason(move(token, signed=signed)) == "FiatTokenV2: invalid signature"


@pytest.mark.parametrize("form", ["bytes", "vrs"])
def test_malformed_signatures_have_their_own_reasons(token: Deployed, form: str) -> None:
    good = signature(typed_data(token.address, RECEIVE, terms()))
    v, r, s = split(good)
    high_s = (ORDER - int.from_bytes(s, "big")).to_bytes(32, "big")
    assert int.from_bytes(s, "big") <= HALF_ORDER

    def reverted_with(signed: bytes) -> str:
        return reason(move(token, signed=signed, form=form))

    assert reverted_with(r + high_s + bytes([55 - v])) == "ECRecover: invalid signature 's' value"
    assert reverted_with(r + s + bytes([v - 27])) == "ECRecover: invalid signature 'v' value"
    assert reverted_with(bytes(32) + s + bytes([v])) == "ECRecover: invalid signature"
    if form == "bytes":
        for wrong in (b"", good[:64], good + b"\x00"):
            assert reverted_with(wrong) == "ECRecover: invalid signature length"
    assert move(token, signed=good, form=form).success


@pytest.mark.parametrize(
    ("at", "reverted"),
    [
        (VALID_AFTER, "FiatTokenV2: authorization is not yet valid"),
        (VALID_AFTER + 1, None),
        (VALID_BEFORE - 1, None),
        (VALID_BEFORE, "FiatTokenV2: authorization is expired"),
    ],
)
@pytest.mark.parametrize("kind", [TRANSFER, RECEIVE])
def test_both_ends_of_the_window_are_outside_it(
    token: Deployed, kind: str, at: int, reverted: str | None
) -> None:
    token.evm.set_block(timestamp=at)
    result = move(token, kind)
    assert (None if result.success else reason(result)) == reverted


def test_a_nonce_serves_once_whatever_it_was_consumed_by(token: Deployed) -> None:
    assert move(token, value=1).success
    assert reason(move(token, value=1)) == USED
    assert reason(move(token, TRANSFER, value=1)) == USED
    assert reason(cancel(token)) == USED
    other = b"\x12" * 32
    assert move(token, value=1, nonce=other).success


@pytest.mark.parametrize("form", ["bytes", "vrs"])
def test_a_canceled_nonce_cannot_be_captured(token: Deployed, form: str) -> None:
    events = token.events(cancel(token, form=form))
    assert [event and event.name for event in events] == ["AuthorizationCanceled"]
    assert token.read("authorizationState", PAYER.address, NONCE) is True
    assert reason(move(token)) == USED
    assert reason(cancel(token)) == USED


def test_canceling_needs_the_payer_and_neither_the_window_nor_the_block_list(
    token: Deployed,
) -> None:
    assert reason(cancel(token, signer=MERCHANT)) == "FiatTokenV2: invalid signature"
    assert token.send("blacklist", PAYER.address).success
    token.evm.set_block(timestamp=VALID_BEFORE + 1)
    assert cancel(token).success


def test_too_small_a_balance_consumes_nothing_and_a_top_up_makes_it_good(token: Deployed) -> None:
    assert reason(move(token, value=10_000_001)) == "ERC20: transfer amount exceeds balance"
    assert token.read("authorizationState", PAYER.address, NONCE) is False
    assert token.send("mint", PAYER.address, 1).success
    assert move(token, value=10_000_001).success


def test_zero_as_recipient_is_refused_last(token: Deployed) -> None:
    reverted = reason(move(token, TRANSFER, to=ZERO))
    assert reverted == "ERC20: transfer to the zero address"
    # A failed ecrecover returns the zero address, which therefore must not count as a signer.
    nothing = bytes(32) + (1).to_bytes(32, "big") + b"\x1b"
    assert reason(move(token, **{"from": ZERO}, signed=nothing)) == "ECRecover: invalid signature"
    result = token.send("transferFrom", ZERO, MERCHANT.address, 0)
    assert reason(result) == "ERC20: transfer from the zero address"


def test_every_check_comes_before_the_next_one(token: Deployed) -> None:
    """Begins with a call that every check rejects, and fixes one problem after the other."""
    blacklisted = "Blacklistable: account is blacklisted"
    signed = bytes(64) + b"\x1b"
    changes: dict[str, Any] = {
        "validAfter": NOW,
        "validBefore": NOW,
        "value": 99_000_000,
        "signed": signed,
        "sender": STRANGER.address,
    }
    assert cancel(token).success
    for account in (PAYER.address, MERCHANT.address):
        assert token.send("blacklist", account).success
    assert token.send("pause").success

    def repaired(repair: Callable[[], Any]) -> str:
        repair()
        return reason(move(token, **changes))

    assert reason(move(token, **changes)) == "Pausable: paused"
    assert repaired(lambda: token.send("unpause")) == blacklisted
    assert repaired(lambda: token.send("unBlacklist", PAYER.address)) == blacklisted
    reverted = repaired(lambda: token.send("unBlacklist", MERCHANT.address))
    assert reverted == "FiatTokenV2: caller must be the payee"
    reverted = repaired(lambda: changes.update(sender=MERCHANT.address))
    assert reverted == "FiatTokenV2: authorization is not yet valid"
    reverted = repaired(lambda: changes.update(validAfter=VALID_AFTER))
    assert reverted == "FiatTokenV2: authorization is expired"
    assert repaired(lambda: changes.update(validBefore=VALID_BEFORE)) == USED
    reverted = repaired(lambda: changes.update(nonce=b"\x99" * 32))
    assert reverted == "ECRecover: invalid signature"
    reverted = repaired(lambda: changes.update(signed=None))
    assert reverted == "ERC20: transfer amount exceeds balance"
    changes.update(value=1)
    assert move(token, **changes).success


def test_the_pause_stops_everything_that_moves_tokens_and_cancellations(token: Deployed) -> None:
    (paused,) = token.events(token.send("pause"))
    assert paused and paused.name == "Pause" and token.read("paused") is True
    attempts = [
        cancel(token),
        token.send("transfer", MERCHANT.address, 1, sender=PAYER.address),
        token.send("transferFrom", PAYER.address, MERCHANT.address, 0),
        token.send("approve", MERCHANT.address, 1, sender=PAYER.address),
        token.send("mint", PAYER.address, 1),
        token.send("permit", PAYER.address, ADMIN, 1, NOW, bytes(65)),
    ]
    assert [reason(result) for result in attempts] == ["Pausable: paused"] * len(attempts)
    (unpaused,) = token.events(token.send("unpause"))
    assert unpaused and unpaused.name == "Unpause"
    assert cancel(token).success


def test_roles_are_asked_for(token: Deployed) -> None:
    def reverted_with(function: str, *arguments: Any) -> str:
        return reason(token.send(function, *arguments, sender=STRANGER.address))

    assert (
        reverted_with("pause") == reverted_with("unpause") == "Pausable: caller is not the pauser"
    )
    not_blacklister = "Blacklistable: caller is not the blacklister"
    assert (
        reverted_with("blacklist", ADMIN) == reverted_with("unBlacklist", ADMIN) == not_blacklister
    )
    assert reverted_with("mint", STRANGER.address, 1) == "FiatToken: caller is not a minter"


def test_a_block_keeps_the_balance_and_stops_transfers(token: Deployed) -> None:
    (event,) = token.events(token.send("blacklist", PAYER.address))
    assert event  # In Circle's source, parameter names begin with an underscore.
    named = {name.lstrip("_"): value for name, value in event.arguments.items()}
    assert named == {"account": PAYER.address.lower()}
    assert token.read("isBlacklisted", PAYER.address) is True
    assert token.read("balanceOf", PAYER.address) == 10_000_000
    blacklisted = "Blacklistable: account is blacklisted"
    result = token.send("transfer", ADMIN, 1, sender=PAYER.address)
    assert reason(result) == blacklisted
    assert reason(token.send("transferFrom", ADMIN, PAYER.address, 0)) == blacklisted
    result = token.send("mint", PAYER.address, 1)
    assert reason(result) == blacklisted
    (event,) = token.events(token.send("unBlacklist", PAYER.address))
    assert event and event.name == "UnBlacklisted"
    assert token.send("transfer", ADMIN, 1, sender=PAYER.address).success


def test_a_balance_leaves_the_top_bit_to_the_block_list(token: Deployed) -> None:
    assert token.send("mint", STRANGER.address, 2**255 - 1).success
    result = token.send("mint", STRANGER.address, 1)
    assert reason(result) == "FiatTokenV2_2: Balance exceeds (2^255 - 1)"


def test_allowances_are_spent(token: Deployed) -> None:
    events = token.events(token.send("approve", ADMIN, 5, sender=PAYER.address))
    assert [event and event.name for event in events] == ["Approval"]
    assert token.send("transferFrom", PAYER.address, MERCHANT.address, 4).success
    assert token.read("allowance", PAYER.address, ADMIN) == 1
    result = token.send("transferFrom", PAYER.address, MERCHANT.address, 2)
    assert reason(result) == "ERC20: transfer amount exceeds allowance"
    result = token.send("approve", ZERO, 5, sender=PAYER.address)
    assert reason(result) == "ERC20: approve to the zero address"


def permit(token: Deployed, deadline: int, signer: Any = PAYER, nonce: int = 0) -> ExecutionResult:
    message = {
        "owner": PAYER.address, "spender": ADMIN, "value": 7, "nonce": nonce, "deadline": deadline,
    }  # fmt: skip
    packed = signature(typed_data(token.address, "Permit", message), signer)
    return token.send("permit", PAYER.address, ADMIN, 7, deadline, *split(packed))


def test_a_permit_holds_until_its_deadline_included_and_once(token: Deployed) -> None:
    assert reason(permit(token, NOW - 1)) == "FiatTokenV2: permit is expired"
    assert reason(permit(token, NOW, STRANGER)) == "EIP2612: invalid signature"
    assert token.read("nonces", PAYER.address) == 0
    assert permit(token, NOW).success
    assert token.read("allowance", PAYER.address, ADMIN) == 7
    assert reason(permit(token, NOW)) == "EIP2612: invalid signature"
    assert permit(token, 2**256 - 1, nonce=1).success


def test_a_wallet_contract_signs_in_both_forms(token: Deployed) -> None:
    wallet = deployed(token.evm, "Wallet", STRANGER.address)
    assert token.send("mint", wallet.address, 10).success
    for number, form in enumerate(("bytes", "vrs")):
        changes = {"from": wallet.address, "value": 5, "nonce": bytes([number]) * 32}
        data = typed_data(token.address, RECEIVE, terms(**changes))
        for signer, good in ((PAYER, False), (STRANGER, True)):
            result = move(token, form=form, signed=signature(data, signer), **changes)
            assert result.success is good
            if not good:
                assert reason(result) == "FiatTokenV2: invalid signature"
    result = move(token, signed=b"\x01" * 7, **{"from": wallet.address}, nonce=b"\x07" * 32)
    assert reason(result) == "FiatTokenV2: invalid signature"
    assert token.read("balanceOf", wallet.address) == 0


@pytest.mark.parametrize(
    ("code", "accepted"),
    [
        # returns the magic value of ERC-1271, left-aligned
        ("0x631626ba7e60e01b5f5260205ff3", True),
        ("0x631626ba7e5f5260205ff3", False),  # returns the magic value right-aligned
        ("0x631626ba7e60e01b5f5260045ff3", False),  # returns only 4 bytes
        ("0x5f5ffd", False),
        ("0xfe", False),
    ],
)
def test_only_the_full_magic_word_is_a_yes(token: Deployed, code: str, accepted: bool) -> None:
    signer = "0x" + "5a" * 20
    token.evm.set_account(signer, code=code)
    result = move(token, signed=b"anything", value=0, **{"from": signer})
    assert result.success is accepted
    if not accepted:
        assert reason(result) == "FiatTokenV2: invalid signature"


def test_a_delegated_account_is_asked_as_a_contract(token: Deployed) -> None:
    """A delegated account (EIP-7702) pays only with signatures that its delegated code accepts."""
    for owner, accepted in ((STRANGER, False), (PAYER, True)):
        wallet = deployed(token.evm, "Wallet", owner.address)
        delegation = b"\xef\x01\x00" + bytes.fromhex(wallet.address[2:])
        token.evm.set_account(PAYER.address, balance=10**18, code=delegation)
        assert move(token, value=1).success is accepted


def slot_of_balance(account: str) -> int:
    key = bytes(12) + bytes.fromhex(account[2:])
    return int.from_bytes(keccak256(key + (9).to_bytes(32, "big")), "big")


def test_values_lie_in_the_slots_of_the_deployed_token(token: Deployed) -> None:
    evm, admin = token.evm, int(ADMIN, 16)

    def slot(number: int) -> int:
        return evm.storage(token.address, number)

    assert (slot(0), slot(2)) == (admin, admin)
    assert slot(1) == admin
    assert token.send("pause").success
    assert slot(1) == admin | 1 << 160
    assert token.send("unpause").success
    assert slot(4) == int.from_bytes(b"USD Coin".ljust(31, b"\0") + bytes([16]), "big")
    assert slot(5) == int.from_bytes(b"USDC".ljust(31, b"\0") + bytes([8]), "big")
    assert slot(6) == 6
    assert slot(7) == int.from_bytes(b"USD".ljust(31, b"\0") + bytes([6]), "big")
    assert slot(8) == admin | 1 << 160
    assert slot(11) == 10_000_000
    assert slot(18) == 3
    assert token.send("blacklist", PAYER.address).success
    assert slot(slot_of_balance(PAYER.address)) == 10_000_000 | 1 << 255
    assert cancel(token).success
    key = bytes(12) + bytes.fromhex(PAYER.address[2:])
    consumed = keccak256(NONCE + keccak256(key + (16).to_bytes(32, "big")))
    assert slot(int.from_bytes(consumed, "big")) == 1


SEPOLIA_TOKEN = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
VECTORS = {
    "transferWithAuthorization": (
        28,
        "79e5b571dc8bd170ba4603e18e79beb2b5ba496895e5d087cd127bd713ada591",
        "7a48aebdedca90f578ebbaad71eedc453d39167e173de9e9d7ed6e8c7e22e84e",
    ),
    "receiveWithAuthorization": (
        27,
        "30231d6246d4aa42f6705ed27387a67f449bb82b42014c0d5d14beb8c10238cd",
        "60ccf3de0a2ca3703d8e9e303998bd19ae207ccffc799489855829da635c3f87",
    ),
    "cancelAuthorization": (
        28,
        "b0cb90574bb10b861eec3bb31b293d266a3ad5825f183d5a14a4947953d756e1",
        "66359185a9776ce0196eca65bf684f3cd3b11bc745641039777e555f6bbe34c5",
    ),
}


def installed_on_sepolia() -> Deployed:
    """Returns this project's token at the address and with the name of one on Base Sepolia."""
    evm: EVM = chain(chain_id=84532)
    contract = artifact("Token")
    short = int.from_bytes(b"USDC".ljust(31, b"\0") + bytes([8]), "big")
    storage = {4: short, slot_of_balance(PAYER.address): 10_000_000}
    evm.set_account(SEPOLIA_TOKEN, code=contract.deployed_bytecode, storage=storage)
    return Deployed(evm, contract, SEPOLIA_TOKEN)


def test_the_domain_separator_is_the_published_one() -> None:
    separator = installed_on_sepolia().read("DOMAIN_SEPARATOR")
    assert separator.hex() == "71f17a3b2ff373b803d70a5a07c046c1a2bc8e89c09ef722fcb047abe94c9818"


@pytest.mark.parametrize("function", VECTORS)
def test_independently_computed_signatures_are_accepted(function: str) -> None:
    token = installed_on_sepolia()
    v, r, s = VECTORS[function]
    signed = (v, bytes.fromhex(r), bytes.fromhex(s))
    if function == "cancelAuthorization":
        result = token.send(function, PAYER.address, NONCE, *signed)
    else:
        message = terms(validAfter=1_700_000_000, validBefore=1_700_000_900)
        result = token.send(function, *order(message), *signed, sender=MERCHANT.address)
    assert result.success, result.error
    assert token.read("authorizationState", PAYER.address, NONCE) is True
