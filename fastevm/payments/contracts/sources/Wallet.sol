// SPDX-License-Identifier: MIT
// A wallet with one key, whose signatures are valid for the wallet (ERC-1271); it can make calls.
pragma solidity 0.8.30;

import {Signatures} from "./Signatures.sol";

contract Wallet {
    address public immutable owner;

    error NotOwner();

    constructor(address owner_) {
        owner = owner_;
    }

    receive() external payable {}

    /// Returns the magic value for the owner's signature; reverts if the signature is invalid.
    function isValidSignature(bytes32 digest, bytes memory signature)
        external
        view
        returns (bytes4)
    {
        bool valid = Signatures.recover(digest, signature) == owner;
        return valid ? Signatures.MAGIC : bytes4(0xffffffff);
    }

    /// Makes a call as the wallet and returns its output; cannot create contracts.
    function execute(address to, uint256 value, bytes calldata data)
        external
        returns (bytes memory)
    {
        if (msg.sender != owner) revert NotOwner();
        (bool success, bytes memory answer) = to.call{value: value}(data);
        if (!success) {
            assembly ("memory-safe") {
                revert(add(answer, 0x20), mload(answer))
            }
        }
        return answer;
    }
}
