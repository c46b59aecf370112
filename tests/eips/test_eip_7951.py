"""EIP-7951: Precompile for secp256r1 Curve Support.

A precompile at address 0x100 verifies signatures on secp256r1, the curve of passkeys.
"""

from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, derive_private_key
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from .support import before_and_after, call_precompile

BEFORE, AFTER = before_and_after(7951)
P256VERIFY = 0x100
DIGEST = b"\x0d" * 32


def signature():
    """Returns a valid input: digest, r, s and public key."""
    key = derive_private_key(7, SECP256R1())
    r, s = decode_dss_signature(key.sign(DIGEST, ECDSA(Prehashed(SHA256()))))
    public = key.public_key().public_numbers()
    return DIGEST + b"".join(number.to_bytes(32, "big") for number in (r, s, public.x, public.y))


def test_a_signature_is_checked():
    data = signature()
    before, after = (call_precompile(fork, P256VERIFY, data) for fork in (BEFORE, AFTER))
    assert (before.success, before.output, before.gas_used) == (True, b"", 0)
    assert (after.success, after.output) == (True, (1).to_bytes(32, "big"))
    assert after.gas_used == 6_900


def test_another_one_gives_no_output_and_does_not_fail():
    for data in (b"\x0e" + signature()[1:], signature()[:-1], b""):
        result = call_precompile(AFTER, P256VERIFY, data)
        assert (result.success, result.output, result.gas_used) == (True, b"", 6_900)
