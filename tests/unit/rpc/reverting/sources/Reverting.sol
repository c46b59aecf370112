// SPDX-License-Identifier: MIT
pragma solidity ^0.8.30;

interface Other {
    function answer() external returns (uint256);
    function act() external;
}

/// Functions that revert without data. Has neither a receive nor a fallback function.
contract Refuser {
    uint256 public count;

    function set(uint8 value) external {
        count = value;
    }

    function flag(bool on, address[] calldata owners) external {
        count = on ? owners.length : 0;
    }

    function pay() external payable {
        count = msg.value;
    }

    function refuse() external {
        count = 1;
        revert();
    }

    function ask(Other other) external {
        count = other.answer();
    }

    function poke(Other other) external {
        other.act();
    }

    function send(address payable to, uint256 amount) external {
        to.transfer(amount);
    }

    function spend(Other other, uint256 limit) external {
        other.act{gas: limit}();
    }

    function compare(Other other) external {
        require(other.answer() < 32);
        count = 1;
    }

    function act() external {
        while (true) count++;
    }
}

/// Has a fallback function that is not payable.
contract Thrifty {
    uint256 public calls;

    fallback() external {
        calls++;
    }
}

/// Its receive and fallback functions revert.
contract Picky {
    receive() external payable {
        revert();
    }

    fallback() external {
        revert();
    }

    function answer() external pure returns (uint256) {
        return 100;
    }
}

library Bells {
    event Rang(uint256 times);

    function ring(uint256 times) external {
        emit Rang(times);
    }

    function silent() external pure {
        revert();
    }
}
