"""EIP-7892: forks that change nothing but the blobs."""

import pytest

from fastevm.spec.blobs import BlobParameters
from fastevm.spec.forks import fork_named, resolve
from fastevm.spec.schedule import schedule_for


@pytest.mark.parametrize(
    ("fork", "blobs"),
    [
        ("BPO1", BlobParameters(target=10, max=15, base_fee_fraction=8_346_193)),
        ("BPO2", BlobParameters(target=14, max=21, base_fee_fraction=11_684_671)),
    ],
)
def test_a_blob_fork_is_osaka_with_other_blobs(fork, blobs):
    assert schedule_for(fork).blobs == blobs
    osaka, changed = resolve(fork_named("osaka")), resolve(fork_named(fork))
    assert changed.opcodes == osaka.opcodes
    assert changed.precompiles == osaka.precompiles
    different = {n for n, v in changed.parameters.items() if v != osaka.parameters[n]}
    assert different == set(blobs.as_parameters())
