// SPDX-License-Identifier: MIT
// Two checkouts: one captures up to the amount that the payer permitted, the other lets the payer
// pay an order in a token with memos.
pragma solidity 0.8.30;

interface IPermitToken {
    function permit(
        address owner,
        address spender,
        uint256 value,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external;
    function transferFrom(address from, address to, uint256 value) external returns (bool);
}

interface IMemoToken {
    function transferFromWithMemo(address from, address to, uint256 value, bytes32 memo)
        external
        returns (bool);
}

/// Captures once per order; the payer's permit is for this contract and the maximum.
contract Checkout {
    IPermitToken public immutable token;
    address public immutable merchant;
    mapping(bytes32 => bool) public captured;

    event PaymentCaptured(
        bytes32 indexed orderId, address indexed payer, uint256 amount, uint256 authorizedMaximum
    );

    error NotMerchant();
    error OrderAlreadyCaptured(bytes32 orderId);
    error AmountExceedsMaximum();

    constructor(IPermitToken token_, address merchant_) {
        token = token_;
        merchant = merchant_;
    }

    function capture(
        bytes32 orderId,
        address payer,
        uint256 amount,
        uint256 maximum,
        uint256 deadline,
        uint8 v,
        bytes32 r,
        bytes32 s
    ) external {
        if (msg.sender != merchant) revert NotMerchant();
        if (captured[orderId]) revert OrderAlreadyCaptured(orderId);
        if (amount > maximum) revert AmountExceedsMaximum();
        captured[orderId] = true;
        token.permit(payer, address(this), maximum, deadline, v, r, s);
        require(token.transferFrom(payer, merchant, amount), "transfer failed");
        emit PaymentCaptured(orderId, payer, amount, maximum);
    }
}

/// The payer pays; the order's number is the memo of the transfer.
contract MemoCheckout {
    IMemoToken public immutable token;
    address public immutable merchant;
    mapping(bytes32 => bool) public paid;

    error OrderAlreadyPaid(bytes32 orderId);

    constructor(IMemoToken token_, address merchant_) {
        token = token_;
        merchant = merchant_;
    }

    function pay(bytes32 orderId, uint256 amount) external {
        if (paid[orderId]) revert OrderAlreadyPaid(orderId);
        paid[orderId] = true;
        require(
            token.transferFromWithMemo(msg.sender, merchant, amount, orderId), "transfer failed"
        );
    }
}
