"""Runs basic tests: encodings, keys, signing, genesis blocks and proof of work.

The name of a file selects its check.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import PurePath
from typing import Any, Final

from fastevm.conformance import difficulty
from fastevm.conformance.fields import account_of, address_of, bytes_of, number_of
from fastevm.conformance.runner import Case, Mismatch
from fastevm.core.crypto.secp256k1 import public_key_address, recover_signer, sign
from fastevm.core.execution.block.block_decoding import decode_block
from fastevm.core.execution.pow.ethash import light_cache, seal_hash, seal_of
from fastevm.core.execution.transaction.transaction import Transaction
from fastevm.core.execution.types import Block, Header
from fastevm.core.primitives import rlp
from fastevm.core.primitives.keccak import keccak256
from fastevm.core.spec.activation import MAINNET, Activations
from fastevm.core.spec.forks import BYZANTIUM, CONSTANTINOPLE, HOMESTEAD
from fastevm.core.state.layer import Layer
from fastevm.core.trie.trie import Trie

Run = Callable[[Mapping[str, Any]], Mismatch | None]

ROPSTEN: Final = Activations([(0, HOMESTEAD), (1_700_000, BYZANTIUM), (4_230_000, CONSTANTINOPLE)])
"""The forks that affect the difficulty on the test network Ropsten."""

NETWORKS: Final[Mapping[str, Activations]] = {
    "difficulty": MAINNET,
    "difficultyMainNetwork": MAINNET,
    "difficultyCustomMainNetwork": MAINNET,
    "difficultyRopsten": ROPSTEN,
    "difficultyCustomHomestead": Activations.always(HOMESTEAD),
}

GENESIS_HASHES: Final = "genesishashestest"
"""Files that contain a single test."""


def is_known(name: str) -> bool:
    """Returns whether a file of this name is one of the basic tests."""
    return PurePath(name).stem in (GENESIS_HASHES, *FILES)


def cases(name: str, content: Any) -> Iterator[Case]:
    """Yields a case for each test of the file. Raises KeyError for an unknown file name."""
    file = PurePath(name).stem
    if file == GENESIS_HASHES:
        yield file, None, partial(check_genesis_hash, content)
        return
    check = FILES[file]
    named = content.items() if isinstance(content, Mapping) else enumerate(content)
    tests: Iterable[tuple[Any, Mapping[str, Any]]] = named
    for title, test in tests:
        yield str(title), None, partial(check, test)


def check_address(test: Mapping[str, Any]) -> Mismatch | None:
    """Checks the key of a seed, its address, and a signature of the empty string.

    Ignores the signature in the file, because the file does not say which digest is signed.
    """
    key, address = keccak256(test["seed"].encode()), address_of(test["addr"])
    if key != bytes_of(test["key"]):
        return Mismatch(test["key"], key.hex())
    if public_key_address(key) != address:
        return Mismatch(test["addr"], public_key_address(key).hex())
    digest = keccak256(b"")
    parity, r, s = sign(digest, key)
    if recover_signer(digest, parity, r, s) != address:
        return Mismatch("a signature of the key", f"v, r, s = {parity}, {r}, {s}")
    return None


def check_signing(test: Mapping[str, Any]) -> Mismatch | None:
    """Checks the encoding of an unsigned transaction, and the sender of both signed transactions.

    The two signatures may differ, because a signer may choose any nonce k.
    """
    unsigned = Transaction.build(
        nonce=test["nonce"],
        gas_price=test["gasprice"],
        gas_limit=test["startgas"],
        to=bytes_of(test["to"]) or None,
        value=test["value"],
        data=bytes_of(test["data"]),
    )
    if unsigned.raw != bytes_of(test["unsigned"]):
        return Mismatch(test["unsigned"], unsigned.raw.hex())
    key = bytes_of(test["key"])
    for signed in (unsigned.sign(key), Transaction.decode(bytes_of(test["signed"]))):
        if signed.sender != public_key_address(key):
            return Mismatch(f"signed by {public_key_address(key).hex()}", str(signed.sender))
        if signed.signing_hash() != unsigned.signing_hash():
            return Mismatch("the transaction that was signed", signed.raw.hex())
    return None


def check_path(test: Mapping[str, Any]) -> Mismatch | None:
    """Checks the hex-prefix encoding of a path, read from a node of a trie built for it."""
    path, ends = test["seq"], test["term"]
    before = [] if ends and len(path) % 2 == 0 else [0] * ends
    behind = [] if ends else [0] * (1 + (len(path) + 1) % 2)
    trie = Trie()
    key = _packed(before + path + behind)
    trie.put(key, bytes(40))
    if before:
        trie.put(_packed([1, *path]), bytes(40))
    if behind:
        trie.put(_packed([*path, 1, *behind[1:]]), bytes(40))
    node = rlp.decode(trie.prove(key)[-1 if ends else 0])
    expected = bytes_of(test["out"])
    return None if node[0] == expected else Mismatch(test["out"], repr(node))


def _packed(nibbles: list[int]) -> bytes:
    return bytes.fromhex("".join(f"{nibble:x}" for nibble in nibbles))


def check_genesis_hash(test: Mapping[str, Any]) -> Mismatch | None:
    """Checks the hash and state root of a genesis block given as RLP."""
    block = decode_block(bytes_of(test["genesis_rlp_hex"]))
    expected = {"hash": test["genesis_hash"], "root": test["genesis_state_root"]}
    found = {"hash": block.hash.hex(), "root": block.header.state_root.hex()}
    return None if found == expected else Mismatch(str(expected), str(found))


def check_genesis(test: Mapping[str, Any]) -> Mismatch | None:
    """Checks the RLP of a genesis block built from its parts."""
    alloc = {
        address_of(address): {**account_of(fields), "balance": number_of(balance_of(fields))}
        for address, fields in test["alloc"].items()
    }
    header = Header(
        parent_hash=bytes_of(test["parentHash"]),
        coinbase=address_of(test["coinbase"]),
        state_root=Layer.of(alloc).state_root(),
        difficulty=number_of(test["difficulty"]),
        gas_limit=number_of(test["gasLimit"]),
        timestamp=number_of(test["timestamp"]),
        extra_data=bytes_of(test["extraData"]),
        mix_hash=bytes_of(test["mixHash"]),
        nonce=bytes_of(test["nonce"]),
    )
    found = Block(header, (), (), None).rlp().hex()
    return None if found == test["result"] else Mismatch(test["result"], found)


def balance_of(fields: Mapping[str, Any]) -> str:
    """Returns the balance of an account, called ``wei`` in old files."""
    return str(fields.get("balance", fields.get("wei", "0x0")))


def check_seal(test: Mapping[str, Any]) -> Mismatch | None:
    """Checks proof of work: cache, header hash, mix hash and result of the nonce.

    The seals of these tests do not meet the difficulty of their headers.
    """
    header = Header.decode(bytes_of(test["header"]))
    cache = light_cache(0)
    mix, result = seal_of(seal_hash(header), header.nonce, header.number)
    found = {
        "cache_size": len(cache),
        "cache_hash": keccak256(cache).hex(),
        "header_hash": seal_hash(header).hex(),
        "nonce": header.nonce.hex(),
        "mixHash": mix.hex(),
        "result": result.hex(),
    }
    expected = {name: test[name] for name in found}
    return None if found == expected else Mismatch(str(expected), str(found))


def check_difficulty(file: str, vector: Mapping[str, Any]) -> Mismatch | None:
    """Checks a difficulty vector of a network, with the fork active at its block."""
    number = number_of(vector["currentBlockNumber"])
    schedule = NETWORKS[file].at(number, 0, after_merge=False)
    return difficulty.run(schedule, vector)


FILES: Final[Mapping[str, Run]] = {
    **{file: partial(check_difficulty, file) for file in NETWORKS},
    "basic_genesis_tests": check_genesis,
    "ethash_tests": check_seal,
    "hexencodetest": check_path,
    "keyaddrtest": check_address,
    "txtest": check_signing,
}
"""The check of a file's tests, by file name without extension."""
