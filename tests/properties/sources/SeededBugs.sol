// SPDX-License-Identifier: MIT
// Ten small contracts, each with one bug that a property test finds. Not for use.
pragma solidity 0.8.30;

// Reentrancy: the balance is cleared after the transfer.
contract Bank {
    mapping(address => uint256) public balances;
    uint256 public total;

    function deposit() external payable {
        balances[msg.sender] += msg.value;
        total += msg.value;
    }

    function withdraw() external {
        uint256 amount = balances[msg.sender];
        require(amount > 0 && amount <= address(this).balance, "nothing");
        (bool sent,) = msg.sender.call{value: amount}("");
        require(sent, "not sent");
        balances[msg.sender] = 0;
        unchecked { total -= amount; }
    }
}

// An account that calls the bank again when it receives ether.
contract Reentrant {
    Bank immutable bank;
    uint256 public again;

    constructor(Bank bank_) { bank = bank_; }

    function deposit() external payable { bank.deposit{value: msg.value}(); }

    function withdraw(uint256 times) external {
        again = times;
        bank.withdraw();
    }

    receive() external payable {
        if (again > 0 && address(bank).balance >= bank.balances(address(this))) {
            again -= 1;
            bank.withdraw();
        }
    }
}

// Rounding: a withdrawal rounds the shares to burn down, so small amounts are free.
contract RoundingVault {
    mapping(address => uint256) public shares;
    uint256 public totalShares;
    uint256 public assets;

    function deposit(uint256 amount) external {
        uint256 made = totalShares == 0 ? amount : amount * totalShares / assets;
        shares[msg.sender] += made;
        totalShares += made;
        assets += amount;
    }

    function earn(uint256 amount) external { if (totalShares > 0) assets += amount; }

    function withdraw(uint256 amount) external {
        uint256 burned = amount * totalShares / assets;
        require(amount < assets, "keep one");
        shares[msg.sender] -= burned;
        totalShares -= burned;
        assets -= amount;
    }
}

// Access control: the pending owner may be set by anybody after the first handover.
contract Ownership {
    address public owner;
    address public pending;
    bool handedOver;

    constructor() { owner = msg.sender; }

    function propose(address next) external {
        require(msg.sender == owner || handedOver, "not the owner");
        pending = next;
    }

    function accept() external {
        require(msg.sender == pending, "not pending");
        owner = pending;
        handedOver = true;
    }
}

// Share inflation: the first depositor and a donation make the shares of the second round to zero.
contract ShareVault {
    mapping(address => uint256) public shares;
    uint256 public totalShares;
    uint256 public assets;

    function deposit(uint256 amount) external returns (uint256 made) {
        require(amount > 0, "nothing");
        made = totalShares == 0 ? amount : amount * totalShares / assets;
        shares[msg.sender] += made;
        totalShares += made;
        assets += amount;
    }

    function donate(uint256 amount) external { assets += amount; }

    function redeem() external returns (uint256 amount) {
        amount = shares[msg.sender] * assets / totalShares;
        totalShares -= shares[msg.sender];
        shares[msg.sender] = 0;
        assets -= amount;
    }
}

// Unchecked overflow: the sum of a batch wraps around, so its amounts are not covered.
contract BatchToken {
    mapping(address => uint256) public balanceOf;
    uint256 public constant totalSupply = 1_000_000;

    constructor() { balanceOf[msg.sender] = totalSupply; }

    function transferToBoth(address to, address also, uint256 amount) external {
        unchecked {
            uint256 sum = amount * 2;
            require(balanceOf[msg.sender] >= sum, "too much");
            balanceOf[msg.sender] -= sum;
            balanceOf[to] += amount;
            balanceOf[also] += amount;
        }
    }
}

// Accounting: burning does not reduce the supply, and emits no event.
contract BurnToken {
    event Transfer(address indexed from, address indexed to, uint256 amount);
    mapping(address => uint256) public balanceOf;
    uint256 public totalSupply;

    function mint(uint256 amount) external {
        balanceOf[msg.sender] += amount;
        totalSupply += amount;
        emit Transfer(address(0), msg.sender, amount);
    }

    function transfer(address to, uint256 amount) external {
        balanceOf[msg.sender] -= amount;
        balanceOf[to] += amount;
        emit Transfer(msg.sender, to, amount);
    }

    function burn(uint256 amount) external { balanceOf[msg.sender] -= amount; }
}

// Signature replay: the nonce is signed, but not used up when the amount is small.
contract Voucher {
    mapping(address => uint256) public paid;
    mapping(address => uint256) public nonces;

    function claim(address signer, address to, uint256 amount, uint8 v, bytes32 r, bytes32 s)
        external
    {
        bytes32 digest = keccak256(abi.encode(address(this), to, amount, nonces[signer]));
        require(ecrecover(digest, v, r, s) == signer && signer != address(0), "bad signature");
        paid[to] += amount;
        if (amount >= 10) nonces[signer] += 1;
    }
}

// Unsafe delegatecall: a plug-in that nobody has approved runs with the storage of the wallet.
contract PluginWallet {
    address public owner;
    mapping(address => bool) public approved;

    constructor() { owner = msg.sender; }

    function approve(address plugin) external {
        require(msg.sender == owner, "not the owner");
        approved[plugin] = true;
    }

    function run(address plugin, bytes calldata data) external returns (bool done) {
        require(msg.sender == owner || data.length >= 4, "not the owner");
        (done,) = plugin.delegatecall(data);
    }
}

// A plug-in whose slot 0 is a counter, not an owner.
contract Counter {
    uint256 public count;

    function set(uint256 value) external { count = value; }
}

// ERC-20: transferFrom does not reduce an allowance that equals the amount.
contract AllowanceToken {
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    constructor() { balanceOf[msg.sender] = 1_000_000; }

    function transfer(address to, uint256 amount) external returns (bool) {
        balanceOf[msg.sender] -= amount;
        balanceOf[to] += amount;
        return true;
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        uint256 allowed = allowance[from][msg.sender];
        require(allowed >= amount, "not allowed");
        if (allowed > amount) allowance[from][msg.sender] = allowed - amount;
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
        return true;
    }
}

// Time lock: a withdrawal is possible one second before its time.
contract TimeLock {
    uint256 public constant DELAY = 2 days;
    mapping(address => uint256) public balances;
    mapping(address => uint256) public unlockedAt;

    function deposit() external payable {
        balances[msg.sender] += msg.value;
        unlockedAt[msg.sender] = block.timestamp + DELAY;
    }

    function withdraw() external {
        require(balances[msg.sender] > 0, "nothing");
        require(block.timestamp + 1 >= unlockedAt[msg.sender], "locked");
        uint256 amount = balances[msg.sender];
        balances[msg.sender] = 0;
        (bool sent,) = msg.sender.call{value: amount}("");
        require(sent, "not sent");
    }
}
