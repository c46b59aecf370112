"""Tests contract artifacts: published identifiers, invalid input, and sources that match."""

import shutil

import pytest

from fastevm.payments.contracts import CONTRACTS, AbiError, artifact, build

TERMS = "address,address,uint256,uint256,uint256,bytes32"
VRS = "uint8,bytes32,bytes32"

SELECTORS = {
    "Token": {
        f"transferWithAuthorization({TERMS},{VRS})": "e3ee160e",
        f"transferWithAuthorization({TERMS},bytes)": "cf092995",
        f"receiveWithAuthorization({TERMS},{VRS})": "ef55bec6",
        f"receiveWithAuthorization({TERMS},bytes)": "88b7ab63",
        f"cancelAuthorization(address,bytes32,{VRS})": "5a049a70",
        "cancelAuthorization(address,bytes32,bytes)": "b7b72899",
        f"permit(address,address,uint256,uint256,{VRS})": "d505accf",
        "permit(address,address,uint256,uint256,bytes)": "9fd5a6cf",
        "authorizationState": "e94a0102",
        "nonces": "7ecebe00",
        "DOMAIN_SEPARATOR": "3644e515",
        "name": "06fdde03",
        "version": "54fd4d50",
        "balanceOf": "70a08231",
        "transfer": "a9059cbb",
        "transferFrom": "23b872dd",
        "approve": "095ea7b3",
        "isBlacklisted": "fe575a87",
        "paused": "5c975abb",
        "TRANSFER_WITH_AUTHORIZATION_TYPEHASH": "a0cc6a68",
        "RECEIVE_WITH_AUTHORIZATION_TYPEHASH": "7f2eecc3",
        "CANCEL_AUTHORIZATION_TYPEHASH": "d9169487",
    },
    "MemoToken": {
        "transferWithMemo": "95777d59",
        "transferFromWithMemo": "929c2539",
        "mintWithMemo": "e44f0b12",
        "burnWithMemo": "38f23b0b",
    },
    "Checkout": {"capture": "9e1bccf0"},
    "Payout": {"sendPayouts": "f318af5f", "splitPayment": "22fe106e"},
    "Wallet": {"isValidSignature": "1626ba7e"},
}
TOPICS = {
    "Token": {
        "Transfer": "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef",
        "Approval": "8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925",
        "AuthorizationUsed": "98de503528ee59b575ef0c0a2576a82497bfc029a5685b209e9ec333479b10a5",
        "AuthorizationCanceled": "1cdd46ff242716cdaa72d159d339a485b3438398348d68f09d7c8c0a59353d81",
        "Blacklisted": "ffa4e6181777692565cf28528fc88fd1516ea86b56da075235fa575af6a4b855",
        "UnBlacklisted": "117e3210bb9aa7d9baff172026820255c6f6c30ba8999d1c2fd88e2848137c4e",
        "Pause": "6985a02210a168e66602d3235cb6db0e70f92b3ba4d376a33c0f3d9434bff625",
        "Unpause": "7805862f689e2f13df9f062ff482ad3ad112aca9e0847911ed832e158c525b33",
    },
    "MemoToken": {"Memo": "6989f5818dcfd11f8cd53b27c94cec33dae1589735f03e639cba54553a1825e8"},
    "Checkout": {
        "PaymentCaptured": "099bbc1f94190f78ec3955750f0e155226c32f3b3db90885d51f8737c7c0ec76"
    },
    "Payout": {"PayoutSent": "e50d87119ceb02f3aa30a83e96b007c343e37d38e4f720be35f408d0477995fb"},
}
ERRORS = {
    "MemoToken": {
        "InsufficientBalance": "db42144d",
        "InsufficientAllowance": "192b9e4e",
        "ExpiredSignature": "bd2a913c",
        "InvalidSigner": "7ba5ffb5",
    },
    "Checkout": {
        "NotMerchant": "3b6405f4",
        "OrderAlreadyCaptured": "5d25aea6",
        "AmountExceedsMaximum": "46d71cf4",
    },
    "Payout": {
        "BatchAlreadyProcessed": "bd6afbc9",
        "InvalidArrayLengths": "a9854bc9",
        "TooManyRecipients": "5531b495",
        "InvalidBasisPoints": "800c7e91",
    },
}


@pytest.mark.parametrize("contract", SELECTORS)
def test_selectors_are_the_published_ones(contract: str) -> None:
    expected = SELECTORS[contract]
    assert {name: artifact(contract).selector(name).hex() for name in expected} == expected


@pytest.mark.parametrize("contract", TOPICS)
def test_topics_are_the_published_ones(contract: str) -> None:
    expected = TOPICS[contract]
    assert {name: artifact(contract).topic(name).hex() for name in expected} == expected


@pytest.mark.parametrize("contract", ERRORS)
def test_errors_are_the_published_ones(contract: str) -> None:
    expected = ERRORS[contract]
    found = {name: artifact(contract).entry("error", name).selector.hex() for name in expected}
    assert found == expected


def test_an_overload_is_found_by_its_number_of_arguments_or_by_its_signature() -> None:
    token = artifact("Token")
    holder, nonce = b"\x01" * 20, b"\x02" * 32
    data = token.encode("cancelAuthorization", holder, nonce, b"signature")
    assert data[:4].hex() == "b7b72899"
    data = token.encode("cancelAuthorization", holder, nonce, 27, nonce, nonce)
    assert data[:4].hex() == "5a049a70"
    with pytest.raises(AbiError, match="cancelAuthorization is ambiguous: cancelAuthorization"):
        token.selector("cancelAuthorization")


def test_what_does_not_fit_is_refused_with_its_name() -> None:
    token = artifact("Token")
    with pytest.raises(AbiError, match="no contract 'Dollar'; there are Token"):
        artifact("Dollar")
    with pytest.raises(AbiError, match="no function balanceOf of 2 arguments"):
        token.encode("balanceOf", 1, 2)
    with pytest.raises(AbiError, match=r"balanceOf\(address\): "):
        token.encode("balanceOf", 5)
    with pytest.raises(AbiError, match="takes 4 arguments"):
        token.initcode()
    with pytest.raises(AbiError, match=r"balanceOf\(address\): "):
        token.decode("balanceOf", b"\x01")


def test_reverts_decode_to_names_and_arguments() -> None:
    payout = artifact("Payout")
    entry = payout.entry("error", "BatchAlreadyProcessed")
    found = payout.decode_error(entry.selector + entry.words([b"\x05" * 32]))
    assert found is not None
    assert (found.name, found.arguments) == (
        "BatchAlreadyProcessed",
        {"batchReference": b"\x05" * 32},
    )
    panic = payout.decode_error(bytes.fromhex("4e487b71") + (0x11).to_bytes(32, "big"))
    assert panic is not None
    assert (panic.name, panic.arguments) == ("Panic", {"code": 0x11})
    for nonsense in (b"", b"\x01\x02", bytes(40), bytes.fromhex("08c379a0"), entry.selector):
        assert payout.decode_error(nonsense) is None


def test_a_log_with_the_right_topic_and_another_layout_is_not_taken_for_ours() -> None:
    """ERC-721's Transfer has the same topic 0, but the token id as a topic and no data."""
    token = artifact("Token")
    words = [(i + 1).to_bytes(32, "big") for i in range(3)]
    assert token.decode_log([token.topic("Transfer"), *words], b"") is None
    assert token.decode_log([token.topic("Transfer"), *words[:2]], b"") is None
    assert token.decode_log([], words[0]) is None
    found = token.decode_log([token.topic("Transfer"), *words[:2]], words[2])
    assert found is not None
    assert found.arguments == {
        "from": "0x" + "00" * 19 + "01",
        "to": "0x" + "00" * 19 + "02",
        "value": 3,
    }


def test_artifacts_are_what_the_compiler_makes_of_the_sources() -> None:
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("node and npm, which run the Solidity compiler, are not installed")
    try:
        fresh = build.compiled()
    except build.InstallError as error:
        pytest.skip(f"the Solidity compiler cannot be installed here: {error}")
    assert set(fresh) == set(build.placed()) > set(CONTRACTS)
    for name, made in fresh.items():
        assert made == build.stored(name), f"{name} is stale: run {build.__name__}"
