"""Tests blob parameters, and numbers in configuration files."""

import pytest

from fastevm.core.primitives.config_values import read_number
from fastevm.core.spec.blobs import BlobParameters, read_blob_schedule

ENTRY = {"target": "0x03", "max": 6, "baseFeeUpdateFraction": "0x32f0ed"}


def test_a_schedule_is_read_by_fork_name_in_lower_case():
    assert read_blob_schedule({"Cancun": ENTRY, "bpo1": ENTRY}) == {
        "cancun": BlobParameters(3, 6, 3_338_477),
        "bpo1": BlobParameters(3, 6, 3_338_477),
    }


@pytest.mark.parametrize("schedule", [None, {}, {"osaka": None}])
def test_a_schedule_may_be_absent(schedule):
    assert read_blob_schedule(schedule) == {}


def test_a_target_may_be_the_maximum_but_not_above():
    assert BlobParameters(6, 6, 1).target == 6
    assert BlobParameters(0, 0, 1).max == 0
    with pytest.raises(ValueError, match="blob target 7 must lie between 0 and the maximum 6"):
        BlobParameters(7, 6, 1)
    with pytest.raises(ValueError, match="fraction must be positive"):
        BlobParameters(3, 6, 0)


@pytest.mark.parametrize(
    ("value", "number"),
    [(0, 0), (58_750 * 10**18, 58_750 * 10**18), ("0x10", 16), ("0X0a", 10), ("15", 15)],
)
def test_numbers_are_read_in_the_usual_spellings(value, number):
    assert read_number(value, "x") == number


@pytest.mark.parametrize("value", [None, True, 1.0, -1, "", "0x", "-0x1", "ten", b"1", [1]])
def test_anything_else_is_an_error_that_names_the_field(value):
    with pytest.raises(ValueError, match=r"^londonBlock: expected a number that is not negative"):
        read_number(value, "londonBlock")
