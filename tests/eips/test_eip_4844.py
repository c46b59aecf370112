"""EIP-4844: blobs, their gas, and the envelope of type 3."""

from fastevm.spec.blobs import BlobParameters
from fastevm.spec.schedule import schedule_for

from .support import introduced, parameter, precompile, price


def test_came_with_cancun():
    assert introduced(4844) == "Cancun"
    assert parameter("has_blobs") == {"Frontier": False, "Cancun": True}
    assert parameter("max_tx_type")["Cancun"] == 3


def test_the_numbers_of_the_blob_fee_market():
    cancun = schedule_for("cancun")
    gas = cancun.parameters["blob_gas_per_blob"]
    assert gas == 2**17
    assert cancun.blobs == BlobParameters(target=3, max=6, base_fee_fraction=3_338_477)
    assert cancun.blobs.target * gas == 393_216
    assert cancun.blobs.max * gas == 786_432
    assert cancun.parameters["blob_min_base_fee"] == 1


def test_blobhash_and_the_point_evaluation():
    assert price("BLOBHASH") == {"Frontier": None, "Cancun": 3}
    assert precompile("KZG_POINT_EVALUATION") == {"Frontier": None, "Cancun": 0x0A}
    assert parameter("kzg_point_evaluation_cost") == {"Frontier": 0, "Cancun": 50_000}
