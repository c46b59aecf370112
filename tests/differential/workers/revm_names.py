"""Calls functions by pyrevm's names and prints the results, one line per step.

The argument is the module: ``pyrevm`` or fastevm's replacement.
"""

import importlib
import sys
from collections.abc import Callable
from typing import Any

revm: Any = importlib.import_module(sys.argv[1])
A, B, C = ("0x" + f"{n:02x}" * 20 for n in (0xA1, 0xB2, 0xC3))
CODES = {
    "stop": "00",
    "return": "60015f5260205ff3",
    "revert": "6007600052602060006000fd",
    "revert with a word": "60075f5260205ffd",
    "0xfe": "fe",
    "no opcode": "0c",
    "underflow": "01",
    "jump": "5f56",
    "loop": "5b5f56",
    "write": "60015f55",
    "delete": "5f5f55",
    "log": "602a5f5260015f60205fa1",
    "return data": "60015f5f3e",
    "environment": "325f523a60205243604052426060524160805244" + "60a0524560c0524660e0526101005ff3",
    "fees": "485f525f5f49602052604060005ff3",
    "counter": "5f5c600101805f5d5f5260205ff3",
    "block hash": "600143034060005260205ff3",
}


def tell(name: str, step: Callable[[], object]) -> None:
    """Runs a step. Prints its name with its result or exception."""
    try:
        print(name, "=", repr(step()))
    except (RuntimeError, OverflowError, KeyError) as error:
        print(name, "!", type(error).__name__, error if isinstance(error, RuntimeError) else "")


def outcome(evm: Any) -> object:
    result = evm.result
    if result is None:
        return None
    logs = [(log.address, log.topics, log.data) for log in result.logs]
    known = (result.is_success, result.is_halt, result.gas_used, result.gas_refunded, logs)
    return (*known, "" if result.is_success else result.reason)


def calls() -> None:
    """Runs every program on its own machine, as a committed call and as a static call."""
    for name, code in CODES.items():
        for static in (False, True):
            evm = revm.EVM(env=revm.Env(block=revm.BlockEnv(number=300, timestamp=9)))
            evm.insert_account_info(C, revm.AccountInfo(code=bytes.fromhex(code), nonce=1))
            evm.insert_account_storage(C, 0, 5)
            evm.set_balance(A, 10**18)
            terms = {"gas": 100_000, "gas_price": 3, "is_static": static}
            tell(f"{name} {static}", lambda e=evm, t=terms: e.message_call(A, C, b"\0\1", **t))
            tell("  result", lambda e=evm: outcome(e))
            tell("  after", lambda e=evm: (e.get_balance(A), e.basic(A).nonce, e.storage(C, 0)))


def refusals() -> None:
    evm = revm.EVM(gas_limit=10**6)
    evm.insert_account_info(C, revm.AccountInfo(code=b"\0"))
    evm.set_balance(A, 100)
    for terms in (
        {"gas": 2_000_000}, {"gas": 20_000}, {"value": 101}, {"gas_price": 1, "gas": 21_000},
        {"caller": C}, {"value": 100},
    ):  # fmt: skip
        tell(f"call {terms}", lambda t=terms: evm.message_call(**({"caller": A, "to": B} | t)))
        tell("  result", lambda: outcome(evm))
    for env in ({"nonce": 4}, {"chain_id": 4}, {"chain_id": 1, "nonce": 0}):
        evm.set_tx_env(revm.TxEnv(**env))
        tell(f"call in {env}", lambda: evm.message_call(A, B))


def creations() -> None:
    evm = revm.EVM(gas_limit=10**7)
    evm.set_balance(A, 10**18)
    for code in ("00", "6001600055", "60fe5f5360015ff3", "60ef5f5360015ff3", "6160016000f3", "fd",
                 "fe", "600a80600b6000396000f3" + CODES["return"]):  # fmt: skip
        tell(f"deploy {code}", lambda c=code: evm.deploy(A, bytes.fromhex(c)))
        tell("  result", lambda: outcome(evm))
        tell("  after", lambda: (evm.basic(A).nonce, evm.get_balance(A)))
    tell("deploy with value and price", lambda: evm.deploy(A, b"", 5, 60_000, 7))
    tell("  after", lambda: (evm.basic(A).nonce, evm.get_balance(A)))
    tell("too large", lambda: evm.deploy(A, bytes(49_153)))
    limit = revm.CfgEnv(limit_contract_code_size=3)
    for size in (3, 4):
        small = revm.EVM(env=revm.Env(cfg=limit))
        tell(f"limit {size}", lambda e=small, s=size: e.deploy(A, bytes([0x60, s, 0x5F, 0xF3])))


def checkpoints() -> None:
    evm = revm.EVM()
    evm.insert_account_info(C, revm.AccountInfo(code=bytes.fromhex(CODES["counter"])))
    tell("nothing", lambda: evm.revert(revm.EVM().snapshot()))
    outer = evm.snapshot()
    for _ in range(2):
        tell("count", lambda: evm.message_call(A, C))
    inner = evm.snapshot()
    tell("count", lambda: evm.message_call(A, C))
    evm.revert(inner)
    tell("after the inner", lambda: evm.message_call(A, C))
    evm.reset_transient_storage()
    tell("reset", lambda: evm.message_call(A, C))
    evm.revert(outer)
    tell("after the outer", lambda: (evm.message_call(A, C), evm.journal_depth))


def values() -> None:
    block = revm.BlockEnv(number=5, excess_blob_gas=2**24, coinbase=B, prevrandao=b"\2" * 32)
    names = ("number", "coinbase", "timestamp", "difficulty", "prevrandao", "basefee", "gas_limit",
             "excess_blob_gas", "blob_gasprice")  # fmt: skip
    tell("block", lambda: [getattr(block, name) for name in names])
    tx = revm.TxEnv(to=B, blob_hashes=[b"\1" * 32], data=b"\3", salt=4)
    names = ("caller", "gas_limit", "gas_price", "gas_priority_fee", "value", "data", "chain_id",
             "nonce", "salt", "access_list", "blob_hashes", "max_fee_per_blob_gas")  # fmt: skip
    tell("tx", lambda: [getattr(tx, name) for name in names])
    cfg = revm.CfgEnv(chain_id=7, perf_analyse_created_bytecodes="analyze")
    tell("cfg", lambda: (cfg.chain_id, cfg.perf_analyse_created_bytecodes))
    evm = revm.EVM(env=revm.Env(cfg, block, tx))
    evm.message_call(A, C, b"\5", 0, 50_000)
    seen = evm.env
    tell("env", lambda: (seen.tx.caller, seen.tx.data, seen.tx.gas_limit, seen.block.basefee))
    tell("hash", lambda: evm.block_hash(3).hex())
    info = evm.basic(A)
    tell("info", lambda: (info.balance, info.nonce, info.code, info.code_hash.hex()))
    tell("code", lambda: (evm.get_code(A), revm.AccountInfo(code=b"\1").code_hash.hex()))
    tell("fee", lambda: revm.fake_exponential(1, 10**8, 3338477))


for part in (calls, refusals, creations, checkpoints, values):
    part()
