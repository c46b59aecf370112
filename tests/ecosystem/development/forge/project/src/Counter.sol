// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

// Stores a value that cannot exceed a limit.
contract Counter {
    uint256 public number;

    event Set(address indexed by, uint256 number);
    error TooLarge(uint256 number);

    constructor(uint256 first) payable {
        number = first;
    }

    function set(uint256 next) public {
        if (next > 100) revert TooLarge(next);
        number = next;
        emit Set(msg.sender, next);
    }

    function increment() public {
        number++;
    }
}
