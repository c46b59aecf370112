"""EIP-7691: more blobs."""

from fastevm.spec.blobs import BlobParameters
from fastevm.spec.schedule import schedule_for

from .support import introduced


def test_came_with_prague():
    assert introduced(7691) == "Prague"
    expected = BlobParameters(target=6, max=9, base_fee_fraction=5_007_716)
    assert schedule_for("prague").blobs == schedule_for("osaka").blobs == expected
