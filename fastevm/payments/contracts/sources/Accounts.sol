// SPDX-License-Identifier: MIT
// Undeployed contract wallets (ERC-6492): a factory that creates them at predictable addresses, and
// a validator that checks a wallet's signature as if the wallet were deployed.
pragma solidity 0.8.30;

import {Signatures} from "./Signatures.sol";
import {Wallet} from "./Wallet.sol";

contract WalletFactory {
    function createAccount(address owner, uint256 salt) external returns (address) {
        address place = getAddress(owner, salt);
        if (place.code.length == 0) new Wallet{salt: bytes32(salt)}(owner);
        return place;
    }

    function getAddress(address owner, uint256 salt) public view returns (address) {
        bytes32 code = keccak256(abi.encodePacked(type(Wallet).creationCode, abi.encode(owner)));
        bytes32 place = keccak256(abi.encodePacked(hex"ff", address(this), salt, code));
        return address(uint160(uint256(place)));
    }
}

/// Not deployed: an eth_call runs its creation code, which returns one byte, 1 or 0.
contract SignatureValidator {
    bytes32 private constant WRAPPED =
        0x6492649264926492649264926492649264926492649264926492649264926492;

    constructor(address signer, bytes32 digest, bytes memory signature) {
        bool good = _valid(signer, digest, signature);
        assembly ("memory-safe") {
            mstore(0, good)
            return(31, 1)
        }
    }

    function _valid(address signer, bytes32 digest, bytes memory signature)
        private
        returns (bool)
    {
        if (!_wrapped(signature)) return _isSignedBy(signer, digest, signature);
        assembly ("memory-safe") {
            mstore(signature, sub(mload(signature), 0x20))
        }
        (address factory, bytes memory call, bytes memory inner) =
            abi.decode(signature, (address, bytes, bytes));
        if (signer.code.length > 0 && _asked(signer, digest, inner)) return true;
        (bool made,) = factory.call(call);
        return made && signer.code.length > 0 && _asked(signer, digest, inner);
    }

    function _wrapped(bytes memory signature) private pure returns (bool) {
        if (signature.length < 32) return false;
        bytes32 last;
        assembly ("memory-safe") {
            last := mload(add(signature, mload(signature)))
        }
        return last == WRAPPED;
    }

    function _isSignedBy(address signer, bytes32 digest, bytes memory signature)
        private
        view
        returns (bool)
    {
        if (signer.code.length > 0) return _asked(signer, digest, signature);
        return signature.length == 65 && Signatures.recover(digest, signature) == signer;
    }

    function _asked(address signer, bytes32 digest, bytes memory signature)
        private
        view
        returns (bool)
    {
        (bool success, bytes memory answer) =
            signer.staticcall(abi.encodeWithSelector(Signatures.MAGIC, digest, signature));
        return success && answer.length >= 32 && bytes32(answer) == bytes32(Signatures.MAGIC);
    }
}
