// SPDX-License-Identifier: MIT
// A dollar token with EIP-3009 authorizations, a pause and a block list. Order of checks, revert
// reasons, events and storage slots are those of USDC, so that clients behave the same.
pragma solidity 0.8.30;

import {Signatures} from "./Signatures.sol";

/// The storage slots of USDC, so that code which writes balances by slot works for both.
abstract contract TokenStorage {
    address public owner; // 0
    address public pauser; // 1, packed with paused
    bool public paused;
    address public blacklister; // 2
    uint256 private _slot3;
    string public name; // 4
    string public symbol; // 5
    uint8 public decimals; // 6
    string public currency; // 7
    address public masterMinter; // 8, packed with initialized
    bool internal _initialized;
    // Top bit: blocked. Low 255 bits: balance.
    mapping(address => uint256) internal _balanceAndBlock; // 9
    mapping(address => mapping(address => uint256)) public allowance; // 10
    uint256 public totalSupply; // 11
    uint256[4] private _slots12To15;
    mapping(address => mapping(bytes32 => bool)) internal _consumed; // 16
    mapping(address => uint256) public nonces; // 17
    uint8 internal _version; // 18
}

/// Roles, the pause and the block list.
abstract contract TokenPolicy is TokenStorage {
    uint256 internal constant BLOCKED = 1 << 255;

    event Pause();
    event Unpause();
    event Blacklisted(address indexed account);
    event UnBlacklisted(address indexed account);

    modifier whenNotPaused() {
        require(!paused, "Pausable: paused");
        _;
    }

    modifier notBlacklisted(address account) {
        require(!isBlacklisted(account), "Blacklistable: account is blacklisted");
        _;
    }

    modifier onlyPauser() {
        require(msg.sender == pauser, "Pausable: caller is not the pauser");
        _;
    }

    modifier onlyBlacklister() {
        require(msg.sender == blacklister, "Blacklistable: caller is not the blacklister");
        _;
    }

    function isBlacklisted(address account) public view returns (bool) {
        return _balanceAndBlock[account] & BLOCKED != 0;
    }

    function pause() external onlyPauser {
        paused = true;
        emit Pause();
    }

    function unpause() external onlyPauser {
        paused = false;
        emit Unpause();
    }

    function blacklist(address account) external onlyBlacklister {
        _balanceAndBlock[account] |= BLOCKED;
        emit Blacklisted(account);
    }

    function unBlacklist(address account) external onlyBlacklister {
        _balanceAndBlock[account] &= ~BLOCKED;
        emit UnBlacklisted(account);
    }
}

/// Balances, allowances and supply.
abstract contract TokenBalances is TokenPolicy {
    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    function balanceOf(address account) public view returns (uint256) {
        return _balanceAndBlock[account] & ~BLOCKED;
    }

    function transfer(address to, uint256 value)
        external
        whenNotPaused
        notBlacklisted(msg.sender)
        notBlacklisted(to)
        returns (bool)
    {
        _transfer(msg.sender, to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value)
        external
        whenNotPaused
        notBlacklisted(msg.sender)
        notBlacklisted(from)
        notBlacklisted(to)
        returns (bool)
    {
        uint256 allowed = allowance[from][msg.sender];
        require(value <= allowed, "ERC20: transfer amount exceeds allowance");
        _transfer(from, to, value);
        unchecked {
            allowance[from][msg.sender] = allowed - value;
        }
        return true;
    }

    function approve(address spender, uint256 value) external whenNotPaused returns (bool) {
        _approve(msg.sender, spender, value);
        return true;
    }

    function mint(address to, uint256 value) external whenNotPaused returns (bool) {
        require(msg.sender == masterMinter, "FiatToken: caller is not a minter");
        require(!isBlacklisted(to), "Blacklistable: account is blacklisted");
        require(to != address(0), "FiatToken: mint to the zero address");
        totalSupply += value;
        _setBalance(to, balanceOf(to) + value);
        emit Transfer(address(0), to, value);
        return true;
    }

    function _approve(address holder, address spender, uint256 value) internal {
        require(holder != address(0), "ERC20: approve from the zero address");
        require(spender != address(0), "ERC20: approve to the zero address");
        allowance[holder][spender] = value;
        emit Approval(holder, spender, value);
    }

    function _transfer(address from, address to, uint256 value) internal {
        require(from != address(0), "ERC20: transfer from the zero address");
        require(to != address(0), "ERC20: transfer to the zero address");
        require(value <= balanceOf(from), "ERC20: transfer amount exceeds balance");
        _setBalance(from, balanceOf(from) - value);
        _setBalance(to, balanceOf(to) + value);
        emit Transfer(from, to, value);
    }

    function _setBalance(address account, uint256 balance) private {
        require(balance < BLOCKED, "FiatTokenV2_2: Balance exceeds (2^255 - 1)");
        require(!isBlacklisted(account), "FiatTokenV2_2: Account is blacklisted");
        _balanceAndBlock[account] = balance;
    }
}

/// The deployable token: EIP-712 messages of EIP-3009 and EIP-2612 in both forms of signatures.
contract Token is TokenBalances {
    bytes32 public constant TRANSFER_WITH_AUTHORIZATION_TYPEHASH = keccak256(
        "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    bytes32 public constant RECEIVE_WITH_AUTHORIZATION_TYPEHASH = keccak256(
        "ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)"
    );
    bytes32 public constant CANCEL_AUTHORIZATION_TYPEHASH =
        keccak256("CancelAuthorization(address authorizer,bytes32 nonce)");
    bytes32 public constant PERMIT_TYPEHASH = keccak256(
        "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"
    );
    bytes32 private constant DOMAIN_TYPEHASH = keccak256(
        "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
    );

    event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce);
    event AuthorizationCanceled(address indexed authorizer, bytes32 indexed nonce);

    /// `admin` has every role and can mint.
    constructor(string memory name_, string memory symbol_, uint8 decimals_, address admin) {
        name = name_;
        symbol = symbol_;
        decimals = decimals_;
        currency = "USD";
        owner = pauser = blacklister = masterMinter = admin;
        _initialized = true;
        _version = 3;
    }

    function version() public pure returns (string memory) {
        return "2";
    }

    /// Computed at each call, so that it is right after a fork changes the chain id.
    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(
            abi.encode(
                DOMAIN_TYPEHASH,
                keccak256(bytes(name)),
                keccak256(bytes(version())),
                block.chainid,
                address(this)
            )
        );
    }

    /// Whether the nonce is consumed, by use or by cancellation.
    function authorizationState(address authorizer, bytes32 nonce) external view returns (bool) {
        return _consumed[authorizer][nonce];
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        transferWithAuthorization(
            from, to, value, validAfter, validBefore, nonce, abi.encodePacked(r, s, v)
        );
    }

    function transferWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) public whenNotPaused notBlacklisted(from) notBlacklisted(to) {
        bytes32 kind = TRANSFER_WITH_AUTHORIZATION_TYPEHASH;
        _move(kind, from, to, value, validAfter, validBefore, nonce, signature);
    }

    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        receiveWithAuthorization(
            from, to, value, validAfter, validBefore, nonce, abi.encodePacked(r, s, v)
        );
    }

    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) public whenNotPaused notBlacklisted(from) notBlacklisted(to) {
        require(to == msg.sender, "FiatTokenV2: caller must be the payee");
        bytes32 kind = RECEIVE_WITH_AUTHORIZATION_TYPEHASH;
        _move(kind, from, to, value, validAfter, validBefore, nonce, signature);
    }

    function cancelAuthorization(address authorizer, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)
        external
    {
        cancelAuthorization(authorizer, nonce, abi.encodePacked(r, s, v));
    }

    /// Anybody may submit it at any time, whatever the authorization's window.
    function cancelAuthorization(address authorizer, bytes32 nonce, bytes memory signature)
        public
        whenNotPaused
    {
        _requireUnused(authorizer, nonce);
        bytes32 message = keccak256(abi.encode(CANCEL_AUTHORIZATION_TYPEHASH, authorizer, nonce));
        _consume(authorizer, nonce, message, signature);
        emit AuthorizationCanceled(authorizer, nonce);
    }

    function permit(
        address holder,
        address spender,
        uint256 value,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        permit(holder, spender, value, deadline, abi.encodePacked(r, s, v));
    }

    function permit(
        address holder,
        address spender,
        uint256 value,
        uint256 deadline,
        bytes memory signature
    ) public whenNotPaused {
        require(deadline >= block.timestamp, "FiatTokenV2: permit is expired");
        bytes32 message = keccak256(
            abi.encode(PERMIT_TYPEHASH, holder, spender, value, nonces[holder]++, deadline)
        );
        bytes32 digest = _digest(message);
        require(Signatures.valid(holder, digest, signature), "EIP2612: invalid signature");
        _approve(holder, spender, value);
    }

    /// The common part of both message types, after their own checks.
    function _move(
        bytes32 kind,
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes memory signature
    ) private {
        _requireOpen(from, validAfter, validBefore, nonce);
        bytes32 message =
            keccak256(abi.encode(kind, from, to, value, validAfter, validBefore, nonce));
        _consume(from, nonce, message, signature);
        emit AuthorizationUsed(from, nonce);
        _transfer(from, to, value);
    }

    function _requireOpen(address from, uint256 validAfter, uint256 validBefore, bytes32 nonce)
        private
        view
    {
        require(block.timestamp > validAfter, "FiatTokenV2: authorization is not yet valid");
        require(block.timestamp < validBefore, "FiatTokenV2: authorization is expired");
        _requireUnused(from, nonce);
    }

    function _requireUnused(address authorizer, bytes32 nonce) private view {
        require(!_consumed[authorizer][nonce], "FiatTokenV2: authorization is used or canceled");
    }

    function _consume(address signer, bytes32 nonce, bytes32 message, bytes memory signature)
        private
    {
        bytes32 digest = _digest(message);
        require(Signatures.valid(signer, digest, signature), "FiatTokenV2: invalid signature");
        _consumed[signer][nonce] = true;
    }

    function _digest(bytes32 message) private view returns (bytes32) {
        return keccak256(abi.encodePacked(hex"1901", DOMAIN_SEPARATOR(), message));
    }
}
