// SPDX-License-Identifier: MIT
// A wallet with one key: its signatures count as the contract's own (ERC-1271), and it can call out.
pragma solidity 0.8.30;

import {Signatures} from "./Signatures.sol";

contract Wallet {
    address public immutable owner;

    error NotOwner();

    constructor(address owner_) {
        owner = owner_;
    }

    receive() external payable {}

    /// The magic value for a signature of the owner; reverts for what is no proper signature.
    function isValidSignature(bytes32 digest, bytes memory signature)
        external
        view
        returns (bytes4)
    {
        bool valid = Signatures.recover(digest, signature) == owner;
        return valid ? Signatures.MAGIC : bytes4(0xffffffff);
    }

    /// Calls as the wallet: deploys nothing, gives back what the callee gave.
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
