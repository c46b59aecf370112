"""Runs web3.py programs: payments, deployments, calls, estimates, simulations, errors."""

import time

import pytest
from eth_account import Account
from eth_account.signers.local import LocalAccount
from web3 import Web3
from web3.exceptions import Web3RPCError

from fastevm.node.dev_accounts import dev_accounts
from tests.max_wait import MAX_WAIT

# Increments slot 0, logs the new value with topic 7, and returns it.
COUNTER = "5f54600101805f555f52600760205fa160205ff3"
INITCODE = f"0x60{len(COUNTER) // 2:02x}600a5f3960{len(COUNTER) // 2:02x}5ff3{COUNTER}"
BOB = Web3.to_checksum_address("0x" + "b0" * 20)


@pytest.fixture(scope="module")
def w3(url: str) -> Web3:
    return Web3(Web3.HTTPProvider(url))


@pytest.fixture(scope="module")
def alice() -> LocalAccount:
    return Account.from_key(dev_accounts(1)[0].private_key)


def send(w3: Web3, sender: LocalAccount, **fields):
    """Fills in, signs and sends a transaction. Returns its receipt from a canonical block."""
    transaction = {
        "from": sender.address,
        "nonce": w3.eth.get_transaction_count(sender.address, "pending"),
        "chainId": w3.eth.chain_id,
        "maxFeePerGas": w3.eth.gas_price * 2,
        "maxPriorityFeePerGas": w3.eth.max_priority_fee,
        **fields,
    }
    transaction.setdefault("gas", w3.eth.estimate_gas(transaction, "pending"))
    tx_hash = w3.eth.send_raw_transaction(sender.sign_transaction(transaction).raw_transaction)
    receipt = w3.eth.wait_for_transaction_receipt(tx_hash, timeout=MAX_WAIT, poll_latency=0.02)
    while w3.eth.block_number < receipt.blockNumber:
        time.sleep(0.02)
    return w3.eth.get_transaction_receipt(tx_hash)


@pytest.fixture(scope="module")
def counter(w3: Web3, alice: LocalAccount) -> str:
    receipt = send(w3, alice, data=INITCODE)
    assert receipt.status == 1
    assert w3.eth.get_code(receipt.contractAddress).hex() == COUNTER
    return receipt.contractAddress


def test_the_node_introduces_itself(w3: Web3) -> None:
    assert w3.is_connected()
    assert w3.eth.chain_id == 31337
    assert w3.net.version == "31337"
    assert w3.client_version.startswith("fastevm/")
    assert w3.eth.syncing is False


def test_a_payment_is_mined_and_found_again(w3: Web3, alice: LocalAccount) -> None:
    before = w3.eth.get_balance(BOB, "latest")
    receipt = send(w3, alice, to=BOB, value=7)
    assert receipt.status == 1
    assert receipt.gasUsed == 21_000
    assert w3.eth.get_balance(BOB, "latest") == before + 7
    found = w3.eth.get_transaction(receipt.transactionHash)
    assert (found["from"], found["to"], found["value"]) == (alice.address, BOB, 7)
    block = w3.eth.get_block(receipt.blockHash, full_transactions=True)
    assert receipt.transactionHash in [item["hash"] for item in block.transactions]


def test_a_development_account_pays_without_a_wallet(w3: Web3) -> None:
    payer = w3.eth.accounts[5]
    sent = [w3.eth.send_transaction({"from": payer, "to": BOB, "value": 1}) for _ in range(3)]
    assert [w3.eth.wait_for_transaction_receipt(tx, 10, 0.02).status for tx in sent] == [1, 1, 1]
    assert len(w3.eth.sign(payer, text="hello")) == 65


def test_a_contract_counts_and_logs(w3: Web3, alice: LocalAccount, counter: str) -> None:
    start = int.from_bytes(w3.eth.get_storage_at(counter, 0, "latest"), "big")
    receipt = send(w3, alice, to=counter)
    assert int.from_bytes(w3.eth.get_storage_at(counter, 0, "latest"), "big") == start + 1
    assert int.from_bytes(w3.eth.call({"to": counter}, "latest"), "big") == start + 2
    (log,) = w3.eth.get_logs({
        "fromBlock": receipt.blockNumber, "toBlock": "latest", "address": counter,
        "topics": ["0x" + (7).to_bytes(32, "big").hex()],
    })  # fmt: skip
    assert log.transactionHash == receipt.transactionHash
    assert int.from_bytes(log.data, "big") == start + 1


def test_a_simulation_runs_blocks_on_pending_state(w3: Web3, counter: str) -> None:
    start = int.from_bytes(w3.eth.call({"to": counter}, "pending"), "big")
    calls = {"calls": [{"to": counter, "from": BOB}]}
    blocks = w3.eth.simulate_v1({"blockStateCalls": [calls, calls]}, "pending")
    outputs = [int(block.calls[0].returnData.hex(), 16) for block in blocks]
    assert outputs == [start, start + 1]
    assert blocks[1].parentHash == blocks[0].hash


def test_overrides_change_what_a_call_sees(w3: Web3) -> None:
    override = {BOB: {"code": "0x475f5260205ff3", "balance": hex(5)}}  # returns SELFBALANCE
    output = w3.eth.call({"to": BOB}, "latest", override)
    assert int.from_bytes(output, "big") == 5


def test_fees_can_be_looked_up(w3: Web3) -> None:
    history = w3.eth.fee_history(2, "latest", [10, 90])
    assert len(history.baseFeePerGas) == len(history.gasUsedRatio) + 1
    assert w3.eth.gas_price >= history.baseFeePerGas[-1] // 2


def test_a_proof_is_there(w3: Web3, alice: LocalAccount) -> None:
    proof = w3.eth.get_proof(alice.address, [0], "latest")
    assert proof.balance == w3.eth.get_balance(alice.address, "latest")
    assert proof.accountProof


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"nonce": 0}, "nonce too low"),
        ({"value": 10**30}, "insufficient funds for gas * price + value"),
    ],
)
def test_refusals_have_their_words(
    w3: Web3, alice: LocalAccount, counter: str, fields: dict, message: str
) -> None:
    transaction = {
        "to": BOB, "gas": 21_000, "chainId": 31337, "maxFeePerGas": 10**10,
        "nonce": w3.eth.get_transaction_count(alice.address, "pending"),
        "maxPriorityFeePerGas": 1, "value": 0, **fields,
    }  # fmt: skip
    with pytest.raises(Web3RPCError, match=message.replace("*", r"\*").replace("+", r"\+")):
        w3.eth.send_raw_transaction(alice.sign_transaction(transaction).raw_transaction)
