"""Tests every row of the tables of dialects and errors."""

import re
from pathlib import Path

import pytest

import fastevm.rpc
from fastevm.rpc.dialect import DIALECTS, dialect_named
from fastevm.rpc.errors import REASONS, RpcError, family_reason, wire_error

PRECONF, GETH = DIALECTS["preconf"], DIALECTS["geth"]


def test_a_missing_block_is_refused_by_preconf_only() -> None:
    assert PRECONF.block_parameter_required
    assert not GETH.block_parameter_required


def test_block_hash_with_range_is_refused_by_geth_only() -> None:
    assert GETH.block_hash_excludes_range
    assert not PRECONF.block_hash_excludes_range


def test_simulation_follows_the_document_in_preconf_and_the_recordings_in_geth() -> None:
    assert PRECONF.simulate_zero_state_root
    assert PRECONF.simulate_error_as_text
    assert PRECONF.simulated_block_spacing is None
    assert not GETH.simulate_zero_state_root
    assert not GETH.simulate_error_as_text
    assert GETH.simulated_block_spacing == 12


def test_a_revert_has_its_code_and_text_per_dialect() -> None:
    error = RpcError("reverted", "execution reverted: why", data="0x08")
    assert wire_error(error, PRECONF) == {
        "code": -32000,
        "message": "execution reverted",
        "data": "0x08",
    }
    assert wire_error(error, GETH) == {
        "code": 3,
        "message": "execution reverted: why",
        "data": "0x08",
    }


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("nonce_too_low", "nonce too low"),
        ("insufficient_funds", "insufficient funds for gas * price + value"),
        ("already_known", "already known"),
        ("replacement_underpriced", "replacement transaction underpriced"),
    ],
)
def test_pool_rejections_are_bare_in_preconf_and_detailed_in_geth(reason: str, text: str) -> None:
    detailed = f"{text}: next nonce 5, tx nonce 1"
    error = RpcError(family_reason("pool", reason), detailed)
    assert wire_error(error, PRECONF) == {"code": -32000, "message": text}
    assert wire_error(error, GETH) == {"code": -32000, "message": detailed}


def test_other_pool_rejections_say_what_the_pool_says() -> None:
    error = RpcError(family_reason("pool", "pool_full"), "txpool is full")
    for dialect in DIALECTS.values():
        assert wire_error(error, dialect) == {"code": -32000, "message": "txpool is full"}


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("nonce_too_low", -38010),
        ("nonce_too_high", -38011),
        ("fee_cap_too_low", -38012),
        ("intrinsic_gas", -38013),
        ("insufficient_funds", -38014),
        ("block_gas_limit", -38015),
        ("block_numbers_order", -38020),
        ("block_timestamps_order", -38021),
        ("sender_not_eoa", -38024),
        ("initcode_too_large", -38025),
        ("too_many_blocks", -38026),
        ("too_many_calls", -38026),
        ("tip_above_fee_cap", -32602),
        ("override", -32000),
        ("nonce_max", -32603),
    ],
)
def test_simulation_errors_have_their_codes(reason: str, code: int) -> None:
    error = RpcError(family_reason("simulate", reason), "text")
    for dialect in DIALECTS.values():
        assert wire_error(error, dialect) == {"code": code, "message": "text"}


def test_every_message_can_be_filled() -> None:
    for reason, row in REASONS.items():
        for name in DIALECTS:
            message = getattr(row, name).message or ""
            values = dict.fromkeys(re.findall(r"{(\w+)}", message), 7)
            error = wire_error(RpcError(reason, **values), DIALECTS[name])
            assert "{" not in error["message"], reason


def test_an_unknown_dialect_is_an_error_with_a_suggestion() -> None:
    with pytest.raises(ValueError, match="did you mean 'geth'"):
        dialect_named("get")
    with pytest.raises(ValueError, match="there are geth, preconf"):
        dialect_named("parity")


def test_nothing_else_names_a_dialect() -> None:
    root = Path(fastevm.rpc.__file__).parent
    for path in root.rglob("*.py"):
        if path.name not in ("dialect.py", "errors.py"):
            assert not re.search(r"[\"'](preconf|geth)[\"']", path.read_text()), path.name
