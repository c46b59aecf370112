"""Tests ape with ape-foundry, which starts a program named ``anvil`` from the PATH.

``python ape_foundry_node.py`` prints a line of JSON for each case.
"""

from __future__ import annotations

import json
import sys
from functools import partialmethod
from pathlib import Path
from typing import Any

import ape
from ape.api import ReceiptAPI
from ape.api.providers import SubprocessProvider
from ape.contracts import ContractContainer
from ethpm_types import ContractType

from tests.ecosystem.development.cases import case, tell
from tests.max_wait import MAX_WAIT

TOKEN = json.loads(
    (
        Path(__file__).parents[3]
        / "fastevm"
        / "payments"
        / "contracts"
        / "artifacts"
        / "Token.json"
    ).read_text()
)
NOBODY = "0x00000000000000000000000000000000000000B0"


def container() -> ContractContainer:
    kind = {"contractName": "Token", "abi": TOKEN["abi"]}
    kind["deploymentBytecode"] = {"bytecode": TOKEN["bytecode"]}
    kind["runtimeBytecode"] = {"bytecode": TOKEN["deployedBytecode"]}
    return ContractContainer(ContractType.model_validate(kind))


def deployed() -> Any:
    owner = ape.accounts.test_accounts[0]
    return owner.deploy(container(), "Dollar", "USD", 6, owner.address)


@case
def ten_accounts() -> None:
    assert len(ape.accounts.test_accounts) >= 10
    assert ape.accounts.test_accounts[0].balance > 10**20


@case
def transfer() -> None:
    receipt = ape.accounts.test_accounts[1].transfer(NOBODY, 5)
    assert receipt.status == 1


@case
def deploy_and_read() -> None:
    assert deployed().name() == "Dollar"


@case
def transact_and_events() -> None:
    owner = ape.accounts.test_accounts[0]
    receipt = deployed().mint(owner, 5, sender=owner)
    (event,) = receipt.events
    assert event.value == 5


@case
def query_of_events() -> None:
    owner = ape.accounts.test_accounts[0]
    token = deployed()
    token.mint(owner, 5, sender=owner)
    assert len(list(token.Transfer)) == 1


@case
def refusal_in_words() -> None:
    token = deployed()
    with ape.reverts("FiatToken: caller is not a minter"):
        token.mint(NOBODY, 5, sender=ape.accounts.test_accounts[2])


@case
def refusal_of_a_mined_one() -> None:
    token = deployed()
    with ape.reverts("FiatToken: caller is not a minter"):
        token.mint(NOBODY, 5, sender=ape.accounts.test_accounts[2], gas=200_000)


@case
def snapshot_and_restore() -> None:
    mark = ape.chain.snapshot()
    height = ape.chain.blocks.height
    ape.chain.mine(3)
    ape.chain.restore(mark)
    assert ape.chain.blocks.height == height


@case
def isolation() -> None:
    height = ape.chain.blocks.height
    with ape.chain.isolate():
        ape.accounts.test_accounts[0].transfer(NOBODY, 1)
    assert ape.chain.blocks.height == height


@case
def mine() -> None:
    height = ape.chain.blocks.height
    ape.chain.mine(5)
    assert ape.chain.blocks.height == height + 5


@case
def mine_at_a_time() -> None:
    aim = ape.chain.blocks.head.timestamp + 1_000
    ape.chain.mine(timestamp=aim)
    assert ape.chain.blocks.head.timestamp == aim


@case
def time_travel() -> None:
    ape.chain.pending_timestamp += 86_400
    before = ape.chain.blocks.head.timestamp
    ape.chain.mine()
    assert ape.chain.blocks.head.timestamp >= before + 80_000


@case
def impersonation() -> None:
    ape.accounts.test_accounts[0].transfer(NOBODY, "1 ether")
    assert ape.accounts[NOBODY].transfer(ape.accounts.test_accounts[0], 1).status == 1


@case
def set_balance() -> None:
    ape.networks.provider.set_balance(NOBODY, "7 ether")
    assert ape.networks.provider.get_balance(NOBODY) == 7 * 10**18


@case
def set_code_and_storage() -> None:
    provider = ape.networks.provider
    provider.set_code(NOBODY, "0x6001")
    assert provider.get_code(NOBODY) == b"\x60\x01"
    provider.set_storage(NOBODY, 1, b"\x05")
    assert int.from_bytes(provider.get_storage(NOBODY, 1), "big") in (5, 5 << 248)
    provider.set_code(NOBODY, "0x")


@case
def automine() -> None:
    provider = ape.networks.provider
    provider.auto_mine = False
    assert provider.auto_mine is False
    provider.auto_mine = True
    assert provider.auto_mine is True


@case
def trace_of_a_transaction() -> None:
    owner = ape.accounts.test_accounts[0]
    receipt: ReceiptAPI = deployed().mint(owner, 5, sender=owner)
    assert receipt.trace.get_calltree()


@case
def return_value() -> None:
    owner = ape.accounts.test_accounts[0]
    receipt = deployed().mint(owner, 5, sender=owner)
    assert receipt.return_value is True


@case
def trace_of_a_call() -> None:
    owner = ape.accounts.test_accounts[0]
    provider = ape.networks.provider
    transaction = deployed().mint.as_transaction(owner, 5, sender=owner)
    assert provider.send_call(transaction) is not None


@case
def contract_creation() -> None:
    token = deployed()
    assert token.creation_metadata.deployer == ape.accounts.test_accounts[0].address


@case
def deal_of_tokens() -> None:
    token = deployed()
    token.balanceOf(NOBODY)
    ape.networks.provider.make_request("anvil_dealERC20", [NOBODY, token.address, hex(9)])
    assert token.balanceOf(NOBODY) == 9


@case
def blocks_query() -> None:
    frame = ape.chain.blocks.query("number", "timestamp")
    assert len(frame) == len(ape.chain.blocks)


@case
def estimate() -> None:
    owner = ape.accounts.test_accounts[0]
    assert deployed().mint.estimate_gas_cost(owner, 5, sender=owner) > 21_000


def main() -> None:
    """Runs all cases. Prints a line of JSON for each."""
    SubprocessProvider.start = partialmethod(SubprocessProvider.start, timeout=MAX_WAIT)
    port = {"host": "auto"}  # lets ape-foundry choose a free port
    with ape.networks.ethereum.local.use_provider("foundry", provider_settings=port):
        tell()


if __name__ == "__main__":
    sys.exit(main())
