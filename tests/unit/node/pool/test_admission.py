"""Tests the checks before a transaction enters the pool, and their error texts."""

from hashlib import sha256
from typing import Any

import pytest

from fastevm.core.execution.transaction.sidecar import BlobSidecar
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.spec.forks import fork_named
from fastevm.core.spec.schedule import schedule_for
from fastevm.errors import InvalidTransaction
from fastevm.node.dev_accounts import dev_accounts
from fastevm.node.pool.admission import ETHER, check_pooled
from fastevm.node.pool.kzg import TrustedSetup, find_trusted_setup

KEY = dev_accounts(1)[0].private_key
GAS_LIMIT = 60_000_000
INFINITY = b"\xc0" + bytes(47)
GENERATOR = bytes.fromhex(
    "97f1d3a73197d7942695638c4fa9ac0fc3688c4f9774b905a14e3a3f171bac586c55e83ff97a1aeffb3af00adb22c6bb"
)
# A blob of the constant polynomial 1: its commitment is the generator, all its proofs are infinity.
ONES = (1).to_bytes(32, "big") * 4096


def made(**fields) -> Transaction:
    values = {"to": bytes(20), "gas_limit": 21_000, "chain_id": 1}
    prices = {"max_fee_per_gas": 100, "max_priority_fee_per_gas": 10}
    return Transaction.build(**{**values, **prices, **fields}).sign(KEY)


def refused(transaction: Transaction, fork: str = "osaka", **options) -> str:
    with pytest.raises(InvalidTransaction) as error:
        check(transaction, fork, **options)
    return error.value.message


def check(transaction: Transaction, fork: str = "osaka", sidecar=None, **options) -> Any:
    schedule = schedule_for(fork_named(fork))
    values = {"chain_id": 1, "gas_limit": GAS_LIMIT}
    return check_pooled(transaction, sidecar, schedule, **{**values, **options})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"gas_limit": 20_999}, "intrinsic gas too low: gas 20999, minimum needed 21000"),
        (
            {"data": bytes(1000), "gas_limit": 25_001},
            "insufficient gas for floor data gas cost: gas 25001, minimum needed 31000",
        ),
        ({"gas_limit": 2**24 + 1}, "transaction gas limit too high (cap: 16777216, tx: 16777217)"),
        ({"max_fee_per_gas": 5}, "max priority fee per gas higher than max fee per gas"),
        (
            {"max_priority_fee_per_gas": 0},
            "transaction gas price below minimum: gas tip cap 0, minimum needed 1",
        ),
        ({"chain_id": 5}, "invalid sender: invalid chain id for signer: have 5 want 1"),
        ({"nonce": 2**64 - 1}, "nonce has max value"),
        (
            {"to": None, "data": bytes(49_153), "gas_limit": 10_000_000},
            "max initcode size exceeded: code size 49153 limit 49152",
        ),
        (
            {"authorization_list": [], "gas_limit": 100_000},
            "set code tx must have at least one authorization tuple",
        ),
    ],
)
def test_a_broken_rule_has_its_words(fields: dict, message: str) -> None:
    assert refused(made(**fields)) == message


def test_size_is_looked_at_before_gas() -> None:
    large = made(data=bytes(200_000), gas_limit=2**30)
    assert refused(large).startswith("oversized data: transaction size 200")


def test_gas_must_fit_into_a_block() -> None:
    assert refused(made(gas_limit=30_000), gas_limit=29_999) == "exceeds block gas limit"


def test_types_come_with_their_forks() -> None:
    text = "transaction type not supported: received type 2"
    assert refused(made(), "berlin") == text


def test_a_node_caps_what_is_offered_for_gas() -> None:
    costly = made(gas_limit=1_000_000, max_fee_per_gas=10**12 + 10**10)
    text = "tx fee (1.01 ether) exceeds the configured cap (1.00 ether)"
    assert refused(costly, fee_cap=ETHER) == text
    check(costly)


def test_unprotected_transactions_are_refused() -> None:
    legacy = Transaction.build(gas_price=100, gas_limit=21_000, to=bytes(20)).sign(KEY)
    text = "only replay-protected (EIP-155) transactions allowed over RPC"
    assert refused(legacy) == text
    check(legacy, allows_unprotected=True)


# --- blobs ----------------------------------------------------------------------------------------


def with_blobs(commitments: list[bytes], **fields) -> Transaction:
    hashes = [b"\x01" + sha256(commitment).digest()[1:] for commitment in commitments]
    return made(**{"blob_versioned_hashes": hashes, "max_fee_per_blob_gas": 1, **fields})


def sidecar(
    blobs: list[bytes], commitments: list[bytes], version: int = 1, proof: bytes = INFINITY
) -> BlobSidecar:
    proofs = [proof] * (len(blobs) * (128 if version else 1))
    return BlobSidecar(version, tuple(blobs), tuple(commitments), tuple(proofs))


@pytest.fixture(scope="module")
def setup() -> TrustedSetup:
    found = find_trusted_setup()
    if found is None:
        pytest.skip("no trusted setup is installed")
    return found


def test_a_blob_transaction_needs_its_sidecar() -> None:
    assert refused(with_blobs([GENERATOR])) == "missing sidecar in blob transaction"


def test_a_blob_fee_of_nothing_is_too_little() -> None:
    free = with_blobs([GENERATOR], max_fee_per_blob_gas=0)
    text = "transaction gas price below minimum: blob fee cap 0, minimum needed 1"
    assert refused(free) == text


def test_there_is_a_limit_on_blobs() -> None:
    many = with_blobs([GENERATOR] * 7)
    assert refused(many) == "transaction blob limit exceeded: blob count 7, limit 6"


def test_the_form_of_a_sidecar_follows_the_fork() -> None:
    transaction = with_blobs([GENERATOR])
    cells = sidecar([ONES], [GENERATOR], 1)
    assert refused(transaction, "cancun", sidecar=cells).startswith("Wrong sidecar format")


def test_counts_and_hashes_must_agree() -> None:
    transaction = with_blobs([GENERATOR])
    two = sidecar([ONES] * 2, [GENERATOR] * 2)
    assert "have (2, 2, 256), want (1, 1, 128)" in refused(transaction, sidecar=two)
    other = sidecar([ONES], [INFINITY])
    assert "does not match its versioned hash" in refused(transaction, sidecar=other)


def test_without_a_setup_blobs_are_refused() -> None:
    text = refused(with_blobs([GENERATOR]), sidecar=sidecar([ONES], [GENERATOR]))
    assert "install fastevm[blobs]" in text and "--trusted-setup" in text


def test_proofs_of_blobs_become_proofs_of_cells(setup: TrustedSetup) -> None:
    """From Osaka on, a sidecar with blob proofs is accepted and converted to cell proofs."""
    zeros = bytes(131_072)
    transaction = with_blobs([GENERATOR, INFINITY])
    blobs = sidecar([ONES, zeros], [GENERATOR, INFINITY], 0)
    kept = check(transaction, sidecar=blobs, setup=setup)
    assert (kept.version, kept.blobs, len(kept.proofs)) == (1, blobs.blobs, 256)
    assert check(transaction, sidecar=kept, setup=setup) is kept
    assert check(transaction, "cancun", sidecar=blobs, setup=setup) is blobs


@pytest.mark.parametrize(("fork", "version"), [("osaka", 1), ("cancun", 0)])
def test_proofs_decide(setup: TrustedSetup, fork: str, version: int) -> None:
    zeros = bytes(131_072)
    check(
        with_blobs([GENERATOR, INFINITY]),
        fork,
        sidecar=sidecar([ONES, zeros], [GENERATOR, INFINITY], version),
        setup=setup,
    )
    transaction = with_blobs([GENERATOR])
    for blob, proof in ((zeros, INFINITY), (ONES, GENERATOR)):
        wrong = sidecar([blob], [GENERATOR], version, proof)
        text = refused(transaction, fork, sidecar=wrong, setup=setup)
        assert text == "KZG verification error: the proofs do not match the blobs"
    nonsense = sidecar([b"\xff" * 131_072], [GENERATOR], version)
    text = refused(transaction, fork, sidecar=nonsense, setup=setup)
    assert text == "KZG verification error: bytes that are not field elements or points"


def test_a_setup_that_was_named_must_exist(tmp_path) -> None:
    with pytest.raises(FileNotFoundError):
        find_trusted_setup(tmp_path / "nothing")
    broken = tmp_path / "broken"
    broken.write_text("4096 65 00")
    with pytest.raises(ValueError, match="wrong number of points"):
        TrustedSetup(broken).load()
