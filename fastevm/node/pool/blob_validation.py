"""Checks the sidecar of a blob transaction: version, counts, hashes and proofs."""

from hashlib import sha256

from fastevm.core.execution.transaction.sidecar import CELL_PROOF_VERSION, BlobSidecar
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.spec.schedule import ForkSchedule
from fastevm.node.pool.kzg import TrustedSetup
from fastevm.node.pool.pooled_transaction import refuse

CELLS_PER_BLOB = 128
HASH_VERSION = b"\x01"  # first byte of a versioned hash (EIP-4844)
NO_SETUP = (
    "blob transactions need a KZG trusted setup, which this node lacks: install fastevm[blobs],"
    " or name its file in --trusted-setup or FASTEVM_TRUSTED_SETUP"
)


def checked_sidecar(
    transaction: Transaction,
    sidecar: BlobSidecar | None,
    schedule: ForkSchedule,
    setup: TrustedSetup | None,
) -> BlobSidecar:
    """Returns the sidecar (EIP-4844, EIP-7594) in the version that the rules require.

    Since Osaka a sidecar has a proof for every cell, before Osaka for every blob. As in
    go-ethereum, blob proofs are also accepted after Osaka, and replaced by computed cell proofs.
    Raises InvalidTransaction if the sidecar does not match the hashes. Proofs are checked last,
    because checking them takes milliseconds.
    """
    hashes = transaction.blob_versioned_hashes
    if sidecar is None:
        refuse("missing_sidecar", "missing sidecar in blob transaction")
    # EIP-7594 introduced both the limit of blobs per transaction and cell proofs.
    wanted = CELL_PROOF_VERSION if schedule.parameters["blob_max_per_tx"] else 0
    if sidecar.version > wanted:
        text = f"Wrong sidecar format: have version {sidecar.version}, want version {wanted}"
        refuse("sidecar_version", text)
    proofs = len(hashes) * (CELLS_PER_BLOB if sidecar.version == CELL_PROOF_VERSION else 1)
    found = (len(sidecar.blobs), len(sidecar.commitments), len(sidecar.proofs))
    if found != (len(hashes), len(hashes), proofs):
        refuse(
            "sidecar_counts",
            f"invalid number of blobs, commitments and proofs: have {found}, "
            f"want {(len(hashes), len(hashes), proofs)}",
        )
    for index, (commitment, expected) in enumerate(zip(sidecar.commitments, hashes, strict=True)):
        if HASH_VERSION + sha256(commitment).digest()[1:] != expected:
            text = f"blob {index} of the sidecar does not match its versioned hash"
            refuse("sidecar_hash", text)
    if setup is None:
        refuse("no_trusted_setup", NO_SETUP)
    _check_proofs(sidecar, setup)
    if sidecar.version == wanted:
        return sidecar
    proved = tuple(setup.cell_proofs(sidecar.blobs))
    return BlobSidecar(CELL_PROOF_VERSION, sidecar.blobs, sidecar.commitments, proved)


def _check_proofs(sidecar: BlobSidecar, setup: TrustedSetup) -> None:
    try:
        if sidecar.version == CELL_PROOF_VERSION:
            right = setup.verify_cells(sidecar.blobs, sidecar.commitments, sidecar.proofs)
        else:
            right = setup.verify_blobs(sidecar.blobs, sidecar.commitments, sidecar.proofs)
    except ValueError as error:
        refuse("kzg", f"KZG verification error: {error}")
    if not right:
        refuse("kzg", "KZG verification error: the proofs do not match the blobs")
