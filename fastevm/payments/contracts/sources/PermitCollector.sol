// SPDX-License-Identifier: MIT
// Captures payments that payers permitted (EIP-2612) in tokens with memos (B20).
pragma solidity 0.8.30;

interface IPermitMemoToken {
    function allowance(address owner, address spender) external view returns (uint256);
    function permit(
        address owner,
        address spender,
        uint256 value,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external;
    function transferFromWithMemo(address from, address to, uint256 value, bytes32 memo)
        external
        returns (bool);
}

/// The spender of the payers' permits. Only the operator captures, only to the recipient, and each
/// order (token, payer and reference) once, whatever else the payer permits.
contract PermitCollector {
    address public immutable operator;
    address public immutable recipient;
    mapping(bytes32 => bool) private _captured;

    error NotOperator();
    error AlreadyCaptured(bytes32 memo);
    error ExpiredSignature(uint256 deadline);
    error PermitUsed();

    constructor(address operator_, address recipient_) {
        operator = operator_;
        recipient = recipient_;
    }

    function captured(address token, address payer, bytes32 memo) external view returns (bool) {
        return _captured[_key(token, payer, memo)];
    }

    function capture(
        IPermitMemoToken token,
        address payer,
        uint256 value,
        uint256 deadline,
        bytes32 memo,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        if (msg.sender != operator) revert NotOperator();
        if (block.timestamp > deadline) revert ExpiredSignature(deadline);
        bytes32 key = _key(address(token), payer, memo);
        if (_captured[key]) revert AlreadyCaptured(memo);
        _captured[key] = true;
        // Anybody may have submitted the permit; then the allowance that it gave is used.
        try token.permit(payer, address(this), value, deadline, v, r, s) {}
        catch {
            if (token.allowance(payer, address(this)) < value) revert PermitUsed();
        }
        require(token.transferFromWithMemo(payer, recipient, value, memo), "transfer failed");
    }

    function _key(address token, address payer, bytes32 memo) private pure returns (bytes32) {
        return keccak256(abi.encode(token, payer, memo));
    }
}
