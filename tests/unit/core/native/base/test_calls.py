"""Tests the checks that all native contracts share: addresses, call opcodes, value, arguments."""

from __future__ import annotations

import pytest

from fastevm import EVM
from fastevm.core.primitives.keccak import keccak256
from fastevm.testing.native_calls import (
    ACTIVATION_REGISTRY,
    FACTORY,
    POLICY_REGISTRY,
    NativeState,
)

from .support import (
    ADMIN,
    ALICE,
    BOB,
    CREATOR,
    MARKER,
    STABLECOIN,
    TOKEN,
    VERSIONS,
    Tokens,
    asset_params,
    call_data,
    create_data,
    error,
    selector,
    slot,
    stablecoin_params,
    word,
)

COLD_ACCOUNT, WARM_ACCOUNT = 2600, 100


def forwarder(kind: int, target: bytes, *, value: int = 0, gas: int = 10_000_000) -> bytes:
    """Returns code that forwards its input, stores the success in slot 0 and returns the output.

    ``kind``: the opcode for the call.
    """
    copy = bytes.fromhex("365f5f37")  # CALLDATACOPY(0, 0, CALLDATASIZE)
    arguments = bytes.fromhex("5f5f365f")  # no space for output; the input is in memory
    if kind in (0xF1, 0xF2):
        arguments += b"\x60" + bytes([value])
    call = arguments + b"\x73" + target + b"\x62" + gas.to_bytes(3, "big") + bytes([kind])
    keep = bytes.fromhex("5f55") if kind != 0xFA else bytes.fromhex("50")
    return copy + call + keep + bytes.fromhex("3d5f5f3e3d5ff3")


def test_before_beryl_the_addresses_are_ordinary_accounts() -> None:
    evm = EVM("azul")
    for address in (FACTORY, POLICY_REGISTRY, ACTIVATION_REGISTRY, b"\xb2" + bytes(19)):
        done = evm.call(address, selector("name()"), sender=ALICE)
        assert (done.success, done.output, done.gas_used) == (True, b"", 0)


def test_a_pattern_makes_a_token_and_the_variant_is_0_or_1() -> None:
    state = NativeState("beryl")
    for variant, native in ((0, True), (1, True), (2, False)):
        address = b"\xb2" + bytes(9) + bytes([variant]) + b"\x07" * 9
        done = state.call(address, selector("name()"))
        # A call to a token that was not created pays for the account access and reverts.
        assert (done.status, done.gas_used) == (("revert", 106) if native else ("success", 0))
    assert state.call(b"\xb2" + bytes(8) + b"\x01" + bytes(10), b"").status == "success"


@pytest.mark.parametrize("fork", VERSIONS)
def test_delegated_calls_are_refused_without_charge(fork: str) -> None:
    tokens = Tokens(fork)
    for kind in (0xF4, 0xF2):
        tokens.evm.set_code(BOB, forwarder(kind, tokens.token))
        done = tokens.call(BOB, selector("totalSupply()"))
        assert done.output == error("DelegateCallNotAllowed()")
    tokens.evm.set_code(BOB, forwarder(0xF1, tokens.token))
    direct = tokens.call(BOB, selector("totalSupply()"))
    assert direct.output == word(0)


def test_value_is_refused_and_returned() -> None:
    tokens = Tokens("cobalt")
    for address in (tokens.token, FACTORY, POLICY_REGISTRY, ACTIVATION_REGISTRY):
        done = tokens.call(address, selector("totalSupply()"), value=5)
        assert (done.output, done.gas_used) == (error("NonPayable()"), 0)
        assert tokens.evm.balance(address) == 0
    never_created = b"\xb2" + bytes(18) + b"\x01"
    assert tokens.call(never_created, b"", value=1).output == error("NonPayable()")


def test_beryls_activation_registry_keeps_value() -> None:
    state = NativeState("beryl")
    data = call_data("isActivated(bytes32)", keccak256(b"base.b20_asset"))
    assert state.call(ACTIVATION_REGISTRY, data, value=5).output == word(1)
    assert state.evm.balance(ACTIVATION_REGISTRY) == 5


def test_static_calls_read_and_fail_at_the_first_write_without_data() -> None:
    tokens = Tokens("denim")
    tokens.fund(ALICE, 10)
    assert tokens.do("balanceOf(address)", ALICE, static=True) == word(10)
    done = tokens.ask("transfer(address,uint256)", BOB, 1, static=True)
    assert (done.status, done.output) == ("revert", b"")
    assert 0 < done.gas_used < 30_000  # only the gas that was charged before the failure
    activation = call_data("activate(bytes32)", keccak256(b"another"))
    done = tokens.call(ACTIVATION_REGISTRY, activation, static=True)
    assert done.output == error("StaticCallNotAllowed()")


def test_tokens_are_cold_and_registries_warm() -> None:
    tokens = Tokens("denim")
    gas = {}
    for target in (tokens.token, FACTORY, POLICY_REGISTRY, ACTIVATION_REGISTRY):
        code = bytes.fromhex("5f5f5f5f73") + target + bytes.fromhex("5afa00")
        tokens.evm.set_code(BOB, code)
        gas[target] = tokens.evm.call(BOB, sender=ALICE).gas_used
    assert gas[FACTORY] == gas[POLICY_REGISTRY] == gas[ACTIVATION_REGISTRY]
    assert gas[tokens.token] - gas[FACTORY] == COLD_ACCOUNT - WARM_ACCOUNT + WARM_ACCOUNT


def test_a_created_token_has_the_code_ef_and_nonce_0() -> None:
    tokens = Tokens("beryl")
    assert tokens.evm.code(tokens.token) == MARKER
    assert tokens.evm.nonce(tokens.token) == 0
    assert keccak256(MARKER).hex().startswith("309b8896")


def test_effects_of_a_call_that_reverts_later_are_undone() -> None:
    """A contract transfers, then reverts. Logs, changes and refunds are undone."""
    tokens = Tokens("denim")
    tokens.fund(BOB, 10)
    code = forwarder(0xF1, tokens.token)
    tokens.evm.set_code(
        BOB, code[: code.index(bytes.fromhex("3d5f5f3e"))] + bytes.fromhex("5f5ffd")
    )
    done = tokens.call(BOB, call_data("transfer(address,uint256)", ALICE, 10))
    assert (done.status, done.logs, done.gas_refunded) == ("revert", (), 0)
    assert tokens.do("balanceOf(address)", BOB) == word(10)


def test_refunds_of_cleared_slots_count() -> None:
    tokens = Tokens("denim")
    tokens.fund(ALICE, 10)
    assert tokens.ask("transfer(address,uint256)", BOB, 10).gas_refunded == 4800


def test_out_of_gas_takes_the_gas_of_the_frame_only() -> None:
    tokens = Tokens("denim")
    tokens.evm.set_code(BOB, forwarder(0xF1, tokens.token, gas=100))
    done = tokens.call(BOB, selector("totalSupply()"))
    assert (done.status, done.output) == ("success", b"")
    assert tokens.evm.storage(BOB, 0) == 0


@pytest.mark.parametrize("fork", VERSIONS)
def test_an_account_delegated_to_a_token_executes_its_code(fork: str) -> None:
    """The account runs the token's code 0xef, which is an invalid opcode.

    A native contract runs only if it is called at its own address, not by delegation (EIP-7702).
    """
    tokens = Tokens(fork)
    tokens.evm.set_code(BOB, b"\xef\x01\x00" + tokens.token)
    assert tokens.call(BOB, selector("name()")).status == "invalid opcode"
    tokens.evm.set_code(BOB, b"\xef\x01\x00" + FACTORY)
    assert tokens.call(BOB, selector("name()")).status == "success"


# --- selectors and arguments ----------------------------------------------------------------------


def test_unknown_and_short_selectors_are_returned() -> None:
    tokens = Tokens("denim")
    for target in (tokens.token, FACTORY, POLICY_REGISTRY, ACTIVATION_REGISTRY):
        assert tokens.call(target, b"\x01\x02\x03\x04\x05").output == b"\x01\x02\x03\x04"
        assert tokens.call(target, b"\x01\x02").output == bytes(4)


def test_functions_of_later_forks_are_unknown_before() -> None:
    signatures = {
        "SEIZE_ROLE()": "cobalt",
        "uiMultiplier()": "cobalt",
        "MIN_COMPOSITE_CHILD_POLICIES()": "cobalt",
        "invertedPolicyId(uint64)": "denim",
        "setAdmin(address)": "cobalt",
    }
    for fork, version in VERSIONS.items():
        tokens = Tokens(fork)
        for signature, first in signatures.items():
            data = selector(signature) + word(1)
            targets = (tokens.token, POLICY_REGISTRY, ACTIVATION_REGISTRY)
            known = any(tokens.call(target, data).output != data[:4] for target in targets)
            assert known == (version >= VERSIONS[first]), (fork, signature)


def test_failures_of_decoding_have_a_text_in_beryl_only() -> None:
    data = call_data("createPolicy(address,uint8)", ADMIN, 2)
    text = f'type check failed for "(address,uint8)" with data: {data[4:].hex()}'
    assert NativeState("beryl").call(POLICY_REGISTRY, data).output == data[:4] + text.encode()
    short = NativeState("beryl").call(POLICY_REGISTRY, data[:20]).output
    assert short == data[:4] + (
        f'type check failed for "IPolicyRegistryCalls" with data: {data[:20].hex()}'.encode()
    )
    assert NativeState("cobalt").call(POLICY_REGISTRY, data).output == error(
        "IncompatiblePolicyType()"
    )
    assert NativeState("cobalt").call(POLICY_REGISTRY, data[:20]).output == data[:4]


def test_a_tuple_of_variable_size_is_shown_with_its_offset() -> None:
    data = call_data("createPolicyWithAccounts(address,uint8,address[])", ADMIN, 2, [ALICE])
    text = (
        'type check failed for "(address,uint8,address[])" with data: '
        + word(32).hex()
        + data[4:].hex()
    )
    assert NativeState("beryl").call(POLICY_REGISTRY, data).output == data[:4] + text.encode()


@pytest.mark.parametrize(
    ("signature", "words", "fails"),
    [
        ("balanceOf(address)", ["11" * 32], True),  # nonzero padding of an address
        ("balanceOf(address)", ["00" * 12 + "11" * 20, "ff" * 32], False),
        ("balanceOf(address)", ["00" * 12], True),
        ("isPaused(uint8)", ["00" * 31 + "04"], True),
        ("policyId(bytes32)", ["ff" * 32], None),
        ("updateName(string)", ["00" * 31 + "20", "00" * 31 + "02", "c328" + "00" * 30], True),
        ("updateName(string)", ["ff" * 32], True),  # the offset exceeds 64 bits
        ("updateName(string)", ["00" * 24 + "ff" * 8], True),  # the offset is beyond the input
        # the offset 0 refers to the word of the offset itself, so the length is 0 too
        ("updateName(string)", ["00" * 32], None),
    ],
)
def test_arguments_are_validated(signature: str, words: list[str], fails: bool | None) -> None:
    tokens = Tokens("cobalt")
    data = selector(signature) + bytes.fromhex("".join(words))
    output = tokens.call(tokens.token, data).output
    assert (output == data[:4]) == bool(fails)


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("c3a9", True), ("e282ac", True), ("f09f9880", True), ("7f", True), ("", True),
        ("c0af", False), ("c1bf", False), ("e080af", False), ("eda080", False), ("80", False),
        ("f0808080", False), ("f4908080", False), ("f5808080", False), ("e282", False),
        ("c3", False), ("ff", False), ("edbfbf", False), ("f48fbfbf", True), ("ee8080", True),
    ],
)  # fmt: skip
def test_strings_are_utf_8(text: str, valid: bool) -> None:
    tokens = Tokens("cobalt")
    raw = bytes.fromhex(text)
    data = selector("extraMetadata(string)") + word(32) + word(len(raw)) + raw.ljust(32, b"\0")
    assert (tokens.call(tokens.token, data).status == "success") == valid


def test_any_nonzero_last_byte_is_true() -> None:
    state = NativeState("cobalt")
    policy = state.call(POLICY_REGISTRY, call_data("createPolicy(address,uint8)", ADMIN, 1))
    data = selector("updateAllowlist(uint64,bool,address[])") + policy.output
    members = word(96) + word(1) + word(ALICE)
    done = state.call(POLICY_REGISTRY, data + word(0xFF) + members, sender=ADMIN)
    assert done.status == "success"
    assert (
        state.call(POLICY_REGISTRY, data + word(0x100) + members, sender=ADMIN).output == data[:4]
    )


# --- hostile state --------------------------------------------------------------------------------


def test_a_policy_that_contains_itself_ends_the_call() -> None:
    """Only a state override can create a policy that contains itself."""
    union = (2 << 56) | 9
    for fork in ("cobalt", "denim"):
        tokens = Tokens(fork)
        children = slot(0x00503AEB06982FA1FE3151DC68F90B3946C55C449DFD447E49DCAECE71BA4A04, union)
        tokens.evm.set_code(POLICY_REGISTRY, MARKER)
        tokens.evm.set_storage(POLICY_REGISTRY, children, 1)
        first = int.from_bytes(keccak256(word(children)), "big")
        tokens.evm.set_storage(POLICY_REGISTRY, first, union)
        data = call_data("isAuthorized(uint64,address)", union, ALICE)
        assert tokens.call(POLICY_REGISTRY, data).status == "out of gas"


@pytest.mark.parametrize("header", [2**256 - 1, 2**64 + 1, (2**32) * 2 + 1])
def test_a_string_longer_than_any_gas_pays_for_is_an_overflow(header: int) -> None:
    tokens = Tokens("denim")
    tokens.seed(TOKEN, header)
    assert tokens.refusal("name()") == error("Panic(uint256)", 0x11)
    tokens.seed(TOKEN, 0xFE)
    assert tokens.ask("name()").status == "out of gas"


def test_a_string_is_read_while_gas_lasts() -> None:
    tokens = Tokens("denim")
    tokens.seed(TOKEN, 2 * (2**32 - 1) + 1)
    assert tokens.ask("name()", gas=5_000_000).status == "out of gas"


# --- the factory ----------------------------------------------------------------------------------


def test_the_feature_is_checked_before_the_parameters() -> None:
    state = NativeState("beryl", features=())
    done = state.call(FACTORY, create_data(0, b"", []), sender=CREATOR)
    assert done.output == error("FeatureNotActivated(bytes32)", keccak256(b"base.b20_asset"))


@pytest.mark.parametrize("fork", VERSIONS)
def test_the_factory_checks_its_parameters(fork: str) -> None:
    state = NativeState(fork)
    refusals = {
        error("InvalidDecimals(uint8)", 5): (0, asset_params(decimals=5)),
        error("InvalidDecimals(uint8)", 19): (0, asset_params(decimals=19)),
        error("UnsupportedVersion(uint8,uint8)", 2, 0): (0, asset_params(version=2, decimals=5)),
        error("UnsupportedVersion(uint8,uint8)", 0, 1): (1, stablecoin_params(version=0)),
        error("InvalidCurrency(string)", "usd"): (1, stablecoin_params(currency="usd")),
        error("MissingRequiredField(string)", "currency"): (1, stablecoin_params(currency="")),
    }
    for expected, (variant, params) in refusals.items():
        done = state.call(FACTORY, create_data(variant, params, []), sender=CREATOR)
        assert done.output == expected
    data = create_data(2, asset_params(), [])
    refused = state.call(FACTORY, data, sender=CREATOR).output
    assert refused[:4] == data[:4]
    assert (len(refused) > 4) == (fork == "beryl")


def test_the_factory_creates_a_token_once() -> None:
    state = NativeState("beryl")
    made = state.call(FACTORY, create_data(0, asset_params(), []), sender=CREATOR)
    token = made.output[-20:]
    again = state.call(FACTORY, create_data(0, asset_params(), []), sender=CREATOR)
    assert again.output == error("TokenAlreadyExists(address)", token)
    other = state.call(FACTORY, create_data(STABLECOIN, stablecoin_params(), []), sender=CREATOR)
    assert other.output[-20:] != token


def test_undecodable_parameters_name_the_struct_in_beryl() -> None:
    data = create_data(0, b"", [])
    output = NativeState("beryl").call(FACTORY, data).output
    assert output == data[:4] + b"ABI decoding failed: buffer overrun while deserializing"
    params = bytearray(asset_params())
    params[32 + 4 * 32 + 30] = 1
    output = NativeState("beryl").call(FACTORY, create_data(0, bytes(params), [])).output
    text = f'type check failed for "B20AssetCreateParams" with data: {bytes(params).hex()}'
    assert output == data[:4] + text.encode()


def array_data(signature: str, length: int, *content: int) -> bytes:
    """Returns call data whose last argument is an array of this length. Other arguments are 0."""
    count = signature.count(",") + 1
    head = [0] * (count - 1) + [32 * count]
    return selector(signature) + b"".join(word(item) for item in (*head, length, *content))


NO_CAPACITY = b"the computed capacity exceeded the collection's maximum"
REFUSED = b"the memory allocator returned an error"


@pytest.mark.parametrize(
    ("signature", "length", "reason"),
    [
        ("createPolicyWithAccounts(address,uint8,address[])", 2**58, NO_CAPACITY),
        ("createPolicyWithAccounts(address,uint8,address[])", 2**58 - 1, REFUSED),
        ("createPolicyWithAccounts(address,uint8,address[])", 2**35, REFUSED),
        ("createB20(uint8,bytes32,bytes,bytes[])", 2**59, NO_CAPACITY),
        ("createB20(uint8,bytes32,bytes,bytes[])", 2**59 - 1, REFUSED),
    ],
)
def test_beryl_says_why_memory_for_an_array_was_refused(
    signature: str, length: int, reason: bytes
) -> None:
    at = FACTORY if signature.startswith("createB20") else POLICY_REGISTRY
    data = array_data(signature, length)
    output = NativeState("beryl").call(at, data).output
    assert output == data[:4] + b"memory allocation failed because " + reason
    assert NativeState("cobalt").call(at, data).output == data[:4]


def test_the_first_wrong_element_of_an_array_is_the_reason_in_beryl() -> None:
    """The array also lacks elements, but the contract reports the first error that it meets."""
    data = array_data("createB20(uint8,bytes32,bytes,bytes[])", 5, 2**64)
    output = NativeState("beryl").call(FACTORY, data).output
    text = f'type check failed for "offset (usize)" with data: {word(2**64).hex()}'
    assert output == data[:4] + text.encode()


def test_a_failing_call_of_the_factory_undoes_the_creation() -> None:
    state = NativeState("denim")
    cases = {
        selector("nothing()"): error("InitCallFailed(uint256)", 1),
        selector("balanceOf(address)"): error("InitCallFailed(uint256)", 1),
        b"\x01": error("InitCallFailed(uint256)", 1),
        call_data("mint(address,uint256)", bytes(20), 1): error(
            "InvalidReceiver(address)", bytes(20)
        ),
        call_data("toScaledBalance(uint256)", 2**255): error("Panic(uint256)", 0x11),
    }
    good = call_data("mint(address,uint256)", ALICE, 7)
    for inner, expected in cases.items():
        done = state.call(FACTORY, create_data(0, asset_params(), [good, inner]), sender=CREATOR)
        assert (done.output, done.logs) == (expected, ())
    made = state.call(FACTORY, create_data(0, asset_params(), [good]), sender=CREATOR)
    assert made.status == "success"


def test_the_first_admin_is_granted_by_the_factory() -> None:
    state = NativeState("denim")
    done = state.call(FACTORY, create_data(0, asset_params(admin=ADMIN), []), sender=CREATOR)
    granted = done.logs[-1]
    assert granted.topics[0] == keccak256(b"RoleGranted(bytes32,address,address)")
    assert granted.topics[1:] == (bytes(32), word(ADMIN), word(FACTORY))


def test_unset_admins_cannot_switch_features() -> None:
    data = call_data("activate(bytes32)", keccak256(b"base.b20_asset"))
    state = NativeState("denim", features=())
    for caller in (bytes(20), ADMIN):
        done = state.call(ACTIVATION_REGISTRY, data, sender=caller)
        assert done.output == error("Unauthorized(address)", caller)
