// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

import "../script/Scripts.s.sol";

// Runs on the node's state, and finds what was deployed there.
contract ForkTest {
    bool public constant IS_TEST = true;
    Vm private constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    function testCounterOfTheNode() public {
        Counter counter = Counter(address(uint160(vm.envUint("COUNTER"))));
        uint256 before = counter.number();
        counter.increment();
        require(counter.number() == before + 1);
    }
}
