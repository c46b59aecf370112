// SPDX-License-Identifier: MIT
pragma solidity ^0.8.0;

import "../src/Counter.sol";

// The forge cheat codes that the scripts call.
interface Vm {
    function envUint(string calldata name) external view returns (uint256);
    function startBroadcast() external;
    function startBroadcast(uint256 key) external;
    function stopBroadcast() external;
}

abstract contract Script {
    bool public constant IS_SCRIPT = true;
    Vm internal constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));
}

// Deploys a contract with ether, and sends twenty transactions that depend on each other.
contract Deploy is Script {
    function run() public {
        vm.startBroadcast(vm.envUint("KEY"));
        Counter counter = new Counter{value: 1 ether}(7);
        for (uint256 next = 0; next < 10; next++) {
            counter.set(next);
            counter.increment();
        }
        vm.stopBroadcast();
        require(counter.number() == 10);
    }
}

// Deploys with CREATE2, for which forge calls the deployment proxy.
contract DeploySalted is Script {
    function run() public {
        vm.startBroadcast(vm.envUint("KEY"));
        new Counter{salt: bytes32(vm.envUint("SALT"))}(9).increment();
        vm.stopBroadcast();
    }
}

// Sends from an account whose key the node has.
contract Pay is Script {
    function run() public {
        vm.startBroadcast();
        payable(0x00000000000000000000000000000000000000B0).transfer(1 ether);
        vm.stopBroadcast();
    }
}

// Exceeds the limit, so forge must send nothing.
contract Fail is Script {
    function run() public {
        vm.startBroadcast(vm.envUint("KEY"));
        new Counter(1).set(101);
        vm.stopBroadcast();
    }
}
