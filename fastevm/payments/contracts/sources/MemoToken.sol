// SPDX-License-Identifier: MIT
// A token with 32-byte memos, logged directly after their Transfer, as in B20: same selectors,
// errors and order of checks, without its policies and roles.
pragma solidity 0.8.30;

import {Signatures} from "./Signatures.sol";

contract MemoToken {
    enum PausableFeature { TRANSFER, MINT, BURN }

    string public name;
    string public symbol;
    uint8 public immutable decimals;
    address public immutable admin;
    uint256 public totalSupply;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;
    mapping(address => uint256) public nonces;
    mapping(PausableFeature => bool) public isPaused;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);
    event Memo(address indexed caller, bytes32 indexed memo);

    error ContractPaused(PausableFeature feature);
    error Unauthorized();
    error InvalidSender(address sender);
    error InvalidReceiver(address receiver);
    error InsufficientBalance(address sender, uint256 balance, uint256 needed);
    error InsufficientAllowance(address spender, uint256 allowance, uint256 needed);
    error ExpiredSignature(uint256 deadline);
    error InvalidSigner(address signer, address owner);

    modifier whenNotPaused(PausableFeature feature) {
        if (isPaused[feature]) revert ContractPaused(feature);
        _;
    }

    modifier onlyAdmin() {
        if (msg.sender != admin) revert Unauthorized();
        _;
    }

    constructor(string memory name_, string memory symbol_, uint8 decimals_, address admin_) {
        name = name_;
        symbol = symbol_;
        decimals = decimals_;
        admin = admin_;
    }

    function setPaused(PausableFeature feature, bool value) external onlyAdmin {
        isPaused[feature] = value;
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transfer(address to, uint256 value) public returns (bool) {
        _transfer(msg.sender, to, value);
        return true;
    }

    function transferWithMemo(address to, uint256 value, bytes32 memo) external returns (bool) {
        _transfer(msg.sender, to, value);
        emit Memo(msg.sender, memo);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) public returns (bool) {
        _transferFrom(from, to, value);
        return true;
    }

    function transferFromWithMemo(address from, address to, uint256 value, bytes32 memo)
        external
        returns (bool)
    {
        _transferFrom(from, to, value);
        emit Memo(msg.sender, memo);
        return true;
    }

    function mint(address to, uint256 value) public {
        _mint(to, value);
    }

    function mintWithMemo(address to, uint256 value, bytes32 memo) external {
        _mint(to, value);
        emit Memo(msg.sender, memo);
    }

    function burn(uint256 value) public {
        _burn(msg.sender, value);
    }

    function burnWithMemo(uint256 value, bytes32 memo) external {
        _burn(msg.sender, value);
        emit Memo(msg.sender, memo);
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
        if (block.timestamp > deadline) revert ExpiredSignature(deadline);
        bytes32 message = keccak256(
            abi.encode(
                keccak256(
                    "Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)"
                ),
                holder,
                spender,
                value,
                nonces[holder]++,
                deadline
            )
        );
        bytes32 digest = keccak256(abi.encodePacked(hex"1901", DOMAIN_SEPARATOR(), message));
        address signer = Signatures.recover(digest, abi.encodePacked(r, s, v));
        if (signer != holder) revert InvalidSigner(signer, holder);
        allowance[holder][spender] = value;
        emit Approval(holder, spender, value);
    }

    function DOMAIN_SEPARATOR() public view returns (bytes32) {
        return keccak256(
            abi.encode(
                keccak256(
                    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"
                ),
                keccak256(bytes(name)),
                keccak256("1"),
                block.chainid,
                address(this)
            )
        );
    }

    function _transferFrom(address from, address to, uint256 value)
        private
        whenNotPaused(PausableFeature.TRANSFER)
    {
        if (to == address(0)) revert InvalidReceiver(to);
        if (from == address(0)) revert InvalidSender(from);
        uint256 allowed = allowance[from][msg.sender];
        if (allowed != type(uint256).max) {
            if (allowed < value) revert InsufficientAllowance(msg.sender, allowed, value);
            allowance[from][msg.sender] = allowed - value;
        }
        _transfer(from, to, value);
    }

    function _transfer(address from, address to, uint256 value)
        private
        whenNotPaused(PausableFeature.TRANSFER)
    {
        if (to == address(0)) revert InvalidReceiver(to);
        uint256 balance = balanceOf[from];
        if (balance < value) revert InsufficientBalance(from, balance, value);
        balanceOf[from] = balance - value;
        balanceOf[to] += value;
        emit Transfer(from, to, value);
    }

    function _mint(address to, uint256 value)
        private
        onlyAdmin
        whenNotPaused(PausableFeature.MINT)
    {
        if (to == address(0)) revert InvalidReceiver(to);
        totalSupply += value;
        balanceOf[to] += value;
        emit Transfer(address(0), to, value);
    }

    function _burn(address from, uint256 value) private whenNotPaused(PausableFeature.BURN) {
        uint256 balance = balanceOf[from];
        if (balance < value) revert InsufficientBalance(from, balance, value);
        balanceOf[from] = balance - value;
        totalSupply -= value;
        emit Transfer(from, address(0), value);
    }
}
