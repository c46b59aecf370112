"""Tests base fee, gas limit and blob fee of a child against the formulas in their EIPs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastevm.core.execution.block.fees import (
    blob_base_fee,
    elastic_gas_limit,
    fake_exponential,
    gas_limit_bounds,
    gas_limit_towards,
    next_base_fee,
    next_excess_blob_gas,
)
from fastevm.core.execution.types import Header
from fastevm.core.primitives.replace import replace
from fastevm.core.spec.schedule import schedule_for

BERLIN, LONDON, CANCUN, PRAGUE, OSAKA, BPO2 = map(
    schedule_for, ("Berlin", "London", "Cancun", "Prague", "Osaka", "BPO2")
)
BLOB = 2**17


def parent(**fields):
    return Header(**{"gas_limit": 30_000_000, "base_fee_per_gas": 10**9} | fields)


def test_the_base_fee_stays_at_the_target():
    assert next_base_fee(parent(gas_used=15_000_000), LONDON) == 10**9


@pytest.mark.parametrize(("used", "fee"), [(0, 875_000_000), (30_000_000, 1_125_000_000)])
def test_the_base_fee_moves_by_an_eighth_at_most(used, fee):
    assert next_base_fee(parent(gas_used=used), LONDON) == fee


def test_the_base_fee_rises_by_at_least_one_wei():
    assert next_base_fee(parent(gas_used=15_000_001, base_fee_per_gas=7), LONDON) == 8


def test_the_first_base_fee_is_one_gwei():
    assert next_base_fee(parent(base_fee_per_gas=None), LONDON) == 10**9


@given(
    limit=st.integers(5_000, 2**40),
    share=st.fractions(0, 1),
    fee=st.integers(0, 2**80),
)
def test_the_base_fee_is_that_of_the_eip(limit, share, fee):
    used = int(limit * share)
    target = limit // 2
    if used == target:
        expected = fee
    elif used > target:
        expected = fee + max(fee * (used - target) // target // 8, 1)
    else:
        expected = fee - fee * (target - used) // target // 8
    header = parent(gas_limit=limit, gas_used=used, base_fee_per_gas=fee)
    assert next_base_fee(header, LONDON) == expected


def test_the_gas_limit_moves_by_less_than_a_1024th():
    assert gas_limit_bounds(parent(gas_limit=1_024_000), LONDON) == (1_023_001, 1_024_999)


def test_the_gas_limit_never_falls_below_5000():
    assert gas_limit_bounds(parent(gas_limit=5_000), LONDON)[0] == 5_000


def test_the_gas_limit_fits_63_bits():
    assert gas_limit_bounds(parent(gas_limit=2**63 - 1), LONDON)[1] == 2**63 - 1


def test_the_gas_limit_doubles_with_the_first_base_fee():
    before = parent(base_fee_per_gas=None)
    assert elastic_gas_limit(before, LONDON) == 60_000_000
    assert elastic_gas_limit(before, BERLIN) == 30_000_000


@pytest.mark.parametrize(
    ("target", "limit"),
    [(60_000_000, 199_804_689), (10**9, 200_195_311), (200_000_001, 200_000_001)],
)
def test_the_gas_limit_moves_towards_a_target(target, limit):
    assert gas_limit_towards(target, parent(gas_limit=200_000_000), OSAKA) == limit


@given(st.integers(0, 50), st.integers(0, 177 * 2**16), st.integers(1, 2**16))
def test_the_fake_exponential_is_the_series_of_eip_4844(factor, numerator, denominator):
    numerator = min(numerator, 177 * denominator)
    terms, i, accumulator = [], 1, factor * denominator
    while accumulator > 0:
        terms.append(accumulator)
        accumulator = (accumulator * numerator) // (denominator * i)
        i += 1
    assert fake_exponential(factor, numerator, denominator) == sum(terms) // denominator


def test_a_power_over_256_bits_is_refused_and_not_summed_up():
    for numerator in (178, 2**64, 2**256):
        with pytest.raises(OverflowError):
            fake_exponential(1, numerator, 1)
    for denominator in (0, -1):
        with pytest.raises(ValueError):
            fake_exponential(1, 1, denominator)


@pytest.mark.parametrize(
    ("excess", "fee"), [(0, 1), (2_314_057, 1), (2_314_058, 2), (10 * 2**20, 23)]
)
def test_the_blob_fee_has_the_values_of_eip_4844(excess, fee):
    assert blob_base_fee(excess, CANCUN) == fee


def test_a_blob_fee_over_256_bits_is_refused():
    with pytest.raises(OverflowError):
        blob_base_fee(2**64 - 1, CANCUN)


def test_every_blob_fee_that_is_computed_fits_a_word():
    fraction = CANCUN.parameters["blob_base_fee_fraction"]
    assert blob_base_fee(fraction * 177, CANCUN) < 2**256


@pytest.mark.parametrize(
    ("excess", "used", "expected"),
    [(0, 0, 0), (0, 3, 0), (0, 4, 1), (2, 6, 5), (3, 0, 0), (10, 0, 7)],
)
def test_excess_blob_gas_is_what_exceeds_the_target(excess, used, expected):
    header = parent(excess_blob_gas=excess * BLOB, blob_gas_used=used * BLOB)
    assert next_excess_blob_gas(header, CANCUN) == expected * BLOB


def test_the_first_block_with_blobs_has_no_excess():
    assert next_excess_blob_gas(parent(), CANCUN) == 0


def test_a_low_blob_fee_does_not_fall_below_the_reserve_price():
    header = parent(excess_blob_gas=8 * BLOB, blob_gas_used=3 * BLOB)
    assert next_excess_blob_gas(header, PRAGUE) == 5 * BLOB
    assert next_excess_blob_gas(header, OSAKA) == 8 * BLOB + 3 * BLOB * (9 - 6) // 9


def test_a_high_blob_fee_falls_as_before_the_reserve_price():
    header = parent(base_fee_per_gas=1, excess_blob_gas=8 * BLOB, blob_gas_used=3 * BLOB)
    assert next_excess_blob_gas(header, OSAKA) == 5 * BLOB


def test_the_child_s_blob_parameters_count():
    header = parent(base_fee_per_gas=1, excess_blob_gas=20 * BLOB, blob_gas_used=0)
    assert next_excess_blob_gas(header, BPO2) == 6 * BLOB
    assert next_excess_blob_gas(replace(header, excess_blob_gas=13 * BLOB), BPO2) == 0
