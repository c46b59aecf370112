// SPDX-License-Identifier: MIT
// Checks ECDSA signatures and signatures of contracts (ERC-1271), with the revert reasons of
// deployed dollar tokens.
pragma solidity 0.8.30;

library Signatures {
    bytes4 internal constant MAGIC = 0x1626ba7e; // isValidSignature(bytes32,bytes)
    // Half of the order of secp256k1: of the two valid s, only the lower one is accepted.
    uint256 internal constant HALF_ORDER =
        0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0;

    /// Recovers the signer of `digest` from r || s || v; reverts if the signature is invalid.
    function recover(bytes32 digest, bytes memory signature) internal pure returns (address) {
        require(signature.length == 65, "ECRecover: invalid signature length");
        bytes32 r;
        bytes32 s;
        uint8 v;
        assembly ("memory-safe") {
            r := mload(add(signature, 0x20))
            s := mload(add(signature, 0x40))
            v := byte(0, mload(add(signature, 0x60)))
        }
        require(uint256(s) <= HALF_ORDER, "ECRecover: invalid signature 's' value");
        require(v == 27 || v == 28, "ECRecover: invalid signature 'v' value");
        address signer = ecrecover(digest, v, r, s);
        require(signer != address(0), "ECRecover: invalid signature");
        return signer;
    }

    /// Whether `signer` signed; calls the signer if it has code (also by EIP-7702 delegation).
    function valid(address signer, bytes32 digest, bytes memory signature)
        internal
        view
        returns (bool)
    {
        if (signer.code.length == 0) return recover(digest, signature) == signer;
        (bool success, bytes memory answer) =
            signer.staticcall(abi.encodeWithSelector(MAGIC, digest, signature));
        return success && answer.length >= 32 && bytes32(answer) == bytes32(MAGIC);
    }
}
