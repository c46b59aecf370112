"""The funded accounts of a development chain, derived from a mnemonic as wallets do.

BIP-39 turns the words into a seed, BIP-32 derives keys from the seed, and BIP-44 defines Ethereum's
path m/44'/60'/0'/0/index. The checksum of the words is not verified, because many test mnemonics
have an invalid one.
"""

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field

from coincurve import PrivateKey

from fastevm.core.crypto.secp256k1 import public_key_address, sign
from fastevm.core.primitives.keccak import keccak256

TEST_MNEMONIC = "test test test test test test test test test test test junk"
DERIVATION_PATH = "m/44'/60'/0'/0/"
ETHER = 10**18
DEV_BALANCE = 10_000 * ETHER
SEED_ROUNDS = 2048  # BIP-39
TEST_SEED = bytes.fromhex(  # the seed of TEST_MNEMONIC, because computing it takes 3 ms
    "9dfc3c64c2f8bede1533b6a79f8570e5943e0b8fd1cf77107adf7b72cef42185"
    "d564a3aee24cab43f80e3c4538087d70fc824eabbad596a23c97b6ee8322ccc0"
)
HARDENED = 0x80000000  # BIP-32
GROUP_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
MAX_ACCOUNTS = 1_000
PERSONAL_MESSAGE = b"\x19Ethereum Signed Message:\n"
FIRST_RECOVERY_ID = 27


@dataclass(frozen=True, slots=True)
class DevAccount:
    """A development account: address (20 bytes) and public test key (32 bytes, not in the repr)."""

    address: bytes
    private_key: bytes = field(repr=False)

    def sign_message(self, message: bytes) -> bytes:
        """Signs a personal message (EIP-191, version 0x45). Returns r, s, v (27 or 28)."""
        return self.sign_digest(keccak256(PERSONAL_MESSAGE + str(len(message)).encode() + message))

    def sign_digest(self, digest: bytes) -> bytes:
        """Signs a 32-byte hash. Returns 65 bytes r, s, v; v is 27 or 28."""
        parity, r, s = sign(digest, self.private_key)
        return r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes([FIRST_RECOVERY_ID + parity])


def balances_of(accounts: Iterable[DevAccount], wei: int = DEV_BALANCE) -> dict[bytes, int]:
    """Returns the balances of the funded accounts by address. Each account gets ``wei``."""
    return dict.fromkeys((account.address for account in accounts), wei)


def dev_accounts(
    count: int = 10, mnemonic: str = TEST_MNEMONIC, path: str = DERIVATION_PATH
) -> tuple[DevAccount, ...]:
    """Returns the first ``count`` accounts of a mnemonic. The index is appended to ``path``.

    Raises ValueError for more than 1,000 accounts, an empty mnemonic and an invalid path.
    """
    if not 0 <= count <= MAX_ACCOUNTS:
        raise ValueError(f"the number of accounts must be 0 to {MAX_ACCOUNTS}, not {count}")
    words = " ".join(mnemonic.split())
    if not words:
        raise ValueError("the mnemonic is empty")
    seed = TEST_SEED if words == TEST_MNEMONIC else seed_of(words)
    key, chain_code = _split(hmac.digest(b"Bitcoin seed", seed, "sha512"))
    for index in _indices(path):
        key, chain_code = _child(key, chain_code, index)
    keys = [_child(key, chain_code, index)[0] for index in range(count)]
    return tuple(DevAccount(public_key_address(key), key) for key in keys)


def seed_of(words: str) -> bytes:
    """Returns the 64-byte seed of a mnemonic without a passphrase (BIP-39)."""
    return hashlib.pbkdf2_hmac("sha512", words.encode(), b"mnemonic", SEED_ROUNDS)


def _indices(path: str) -> list[int]:
    """Returns the indices of a path such as m/44'/60'/0'/0/ (BIP-32)."""
    root, *steps = path.strip("/").split("/")
    digits = [step.rstrip("'") for step in steps]
    if root != "m" or not all(digit.isascii() and digit.isdigit() for digit in digits):
        raise ValueError(f"derivation path {path!r}: expected one such as {DERIVATION_PATH}")
    found = [
        int(item) + HARDENED * (item != step) for item, step in zip(digits, steps, strict=True)
    ]
    if any(item >= 2 * HARDENED for item in found):
        raise ValueError(f"derivation path {path!r}: an index is below 2**31")
    return found


def _split(digest: bytes) -> tuple[bytes, bytes]:
    return digest[:32], digest[32:]


def _child(key: bytes, chain_code: bytes, index: int) -> tuple[bytes, bytes]:
    """Derives a private child key (BIP-32)."""
    public = b"\0" + key if index >= HARDENED else PrivateKey(key).public_key.format()
    left, right = _split(hmac.digest(chain_code, public + index.to_bytes(4, "big"), "sha512"))
    child = (int.from_bytes(left, "big") + int.from_bytes(key, "big")) % GROUP_ORDER
    return child.to_bytes(32, "big"), right
