"""Tests the command that prints the rules."""

import subprocess
import sys

import pytest

from fastevm.core.spec.__main__ import main
from tests.max_wait import MAX_WAIT


def lines(capsys, *arguments):
    assert main(arguments) == 0
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_show_names_each_value_and_its_eip(capsys):
    rows = lines(capsys, "show", "osaka")
    assert ["0x54", "SLOAD", "100", "1", "1", "EIP-2929"] in rows
    assert ["0x1e", "CLZ", "5", "1", "1", "EIP-7939"] in rows
    assert ["P256VERIFY", "0x100", "EIP-7951"] in rows
    assert ["UNDELETE_RESTORE", "100", "-2,000"] in rows
    assert any(row[:4] == ["tx_gas_cap", "16,777,216", "gas", "EIP-7825"] for row in rows)


def test_show_leaves_out_what_does_not_exist_yet(capsys):
    rows = lines(capsys, "show", "Frontier")
    names = {cell for row in rows for cell in row}
    assert "SLOAD" in names
    assert not names & {"PUSH0", "DELEGATECALL", "MODEXP", "blob_target", "BEACON_ROOTS_ADDRESS"}


def test_diff_shows_both_values_and_the_eip_responsible(capsys):
    rows = lines(capsys, "diff", "london", "shanghai")
    assert rows[0] == ["what", "name", "London", "Shanghai", "by"]
    assert ["opcode", "PUSH0", "-", "2", "EIP-3855"] in rows
    assert ["parameter", "max_initcode_size", "0", "49,152", "EIP-3860"] in rows
    assert ["parameter", "warm_coinbase", "no", "yes", "EIP-3651"] in rows
    assert not any("SLOAD" in row for row in rows)


def test_diff_shows_precompiles_and_system_contracts(capsys):
    rows = lines(capsys, "diff", "cancun", "osaka")
    assert ["precompile", "BLS12_G1ADD", "-", "11", "EIP-2537"] in rows
    address = "0x0000f90827f1c53a10cb7a02335b175320002935"
    assert ["contract", "HISTORY_STORAGE_ADDRESS", "-", address, "EIP-2935"] in rows


def test_diff_backwards_says_what_is_missing(capsys):
    rows = lines(capsys, "diff", "berlin", "istanbul")
    assert ["opcode", "SLOAD", "100", "800", "without", "EIP-2929"] in rows


def test_diff_of_a_fork_that_takes_an_eip_back(capsys):
    rows = lines(capsys, "diff", "constantinople", "petersburg")
    assert ["parameter", "sstore_net_metering", "yes", "no", "without", "EIP-1283"] in rows
    assert ["SSTORE", "NOOP", "gas", "200", "5,000", "by", "the", "parameters", "above"] in rows


def test_diff_of_equals_says_so(capsys):
    assert main(["diff", "merge", "paris"]) == 0
    assert capsys.readouterr().out == "Paris and Paris have the same rules\n"


def test_list_names_every_fork_and_where_it_begins(capsys):
    rows = lines(capsys, "list")
    assert ["London", "block", "12,965,000", "1559", "3198", "3529", "3541", "3554"] in rows
    assert rows[-2] == ["BPO2", "time", "1767747671", "8135"]
    assert rows[-1][:2] == ["Amsterdam", "2780"]
    assert any(row[0] == "Petersburg" and row[-1] == "-1283" for row in rows)


@pytest.mark.parametrize("arguments", [("show", "lodnon"), ("diff", "berlin", "lodnon")])
def test_an_unknown_fork_is_exit_code_2(capsys, arguments):
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == "error: unknown fork 'lodnon': did you mean London?\n"


def test_the_module_runs_as_a_command():
    command = [sys.executable, "-m", "fastevm.core.spec", "diff", "osaka", "bpo1"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=MAX_WAIT, check=True)
    assert "blob_target" in found.stdout
    assert "EIP-8134" in found.stdout
