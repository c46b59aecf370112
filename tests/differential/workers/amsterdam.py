"""Runs cases as Amsterdam blocks, on a transcription of the rules over EELS."""

from dataclasses import fields as fields_of
from typing import Any

from amsterdam_rules.blocks import BlockRun
from amsterdam_rules.gas import Block, Unspecified
from amsterdam_rules.numbers import RULE_SETS
from amsterdam_rules.operations import install
from amsterdam_rules.reach import taken
from eels import dump, environment_of, rules_of, state_of, transaction_of
from ethereum.exceptions import EthereumException
from pipe import hexed, serve, unhexed

# The specification's last fork. The transcription changes its state, transactions and opcodes.
BASE = "BPO2"


def block_of(case: dict[str, Any]) -> Block:
    rules = rules_of(BASE)
    state = state_of(rules, case["pre"])
    block = dict(case["block"])
    environment = environment_of(rules, block, state)
    known = {item.name: getattr(environment, item.name) for item in fields_of(environment)}
    return Block(**known, numbers=RULE_SETS[case["fork"]], slot_number=block["slot_number"])


def run_transaction(run: BlockRun, fields: dict[str, Any]) -> dict[str, Any]:
    rules = rules_of(BASE)
    rules.sender = rules.types.Address(unhexed(fields["sender"]))
    try:
        done = run.add(transaction_of(rules, fields), rules.sender)
    except EthereumException as refusal:
        return {"status": "rejected", "reason": repr(refusal)}
    status = "success" if done.error is None else "halt"
    if type(done.error).__name__ == "Revert":
        status = "revert"
    return {
        "status": status,
        "reason": "" if done.error is None else repr(done.error),
        "gas_used": done.paid,
        "block_gas": max(run.sums.regular, run.sums.state),
        "refunded": done.refunded,
        "regular": done.regular,
        "state": done.state,
        "output": "0x" if status == "halt" else hexed(done.output),
        "logs": [
            [hexed(log.address), [hexed(topic) for topic in log.topics], hexed(log.data)]
            for log in done.logs
        ],
    }


def run(case: dict[str, Any]) -> dict[str, Any]:
    """Returns the outcome of a case's block, and how often the block applied each rule."""
    outcome = outcome_of(case)
    return {**outcome, "reached": taken()}


def outcome_of(case: dict[str, Any]) -> dict[str, Any]:
    rules = rules_of(BASE)
    block = BlockRun(block_of(case))
    block.begin()
    try:
        outcomes = [run_transaction(block, fields) for fields in case["transactions"]]
    except (OverflowError, Unspecified) as error:
        # Lengths near 2**256 overflow in the specification's MODEXP, because it charges gas too
        # late.
        return {"unsupported": repr(error)}
    withdrawals = [(rules.types.Address(unhexed(a)), n) for a, n in case["block"]["withdrawals"]]
    try:
        block.end(withdrawals)
    except EthereumException as refusal:
        return {"transactions": outcomes, "refusal": repr(refusal)}
    state = block.block.state
    return {
        "transactions": outcomes,
        "requests": [hexed(item) for item in block.requests],
        "access_list": hexed(block.block.recorder.encode()),
        "state": dump(state),
        "root": hexed(rules.state.state_root(state)),
    }


if __name__ == "__main__":
    install()
    serve(run, "the transcription of Amsterdam's rules")
