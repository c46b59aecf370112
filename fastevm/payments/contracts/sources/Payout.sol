// SPDX-License-Identifier: MIT
// Pays many recipients in one transaction or splits an amount; all payments log one reference.
pragma solidity 0.8.30;

interface IToken {
    function transferFrom(address from, address to, uint256 value) external returns (bool);
}

contract Payout {
    uint256 public constant MAX_RECIPIENTS = 100;
    uint256 private constant WHOLE = 10_000; // basis points

    IToken public immutable token;
    mapping(bytes32 => bool) public processed;

    event PayoutSent(
        bytes32 indexed batchReference,
        address indexed sender,
        address indexed recipient,
        uint256 amount
    );

    error BatchAlreadyProcessed(bytes32 batchReference);
    error InvalidArrayLengths();
    error TooManyRecipients();
    error InvalidBasisPoints();

    constructor(IToken token_) {
        token = token_;
    }

    function sendPayouts(
        bytes32 batchReference,
        address[] calldata recipients,
        uint256[] calldata amounts
    ) external {
        _open(batchReference, recipients.length, amounts.length);
        for (uint256 i = 0; i < recipients.length; ++i) {
            _send(batchReference, recipients[i], amounts[i]);
        }
    }

    /// Each payment is floor(amount * bps / 10,000); one recipient gets the rounding remainder.
    function splitPayment(
        bytes32 batchReference,
        uint256 amount,
        address[] calldata recipients,
        uint16[] calldata bps,
        uint256 remainderIndex
    ) external {
        _open(batchReference, recipients.length, bps.length);
        if (remainderIndex >= recipients.length) revert TooManyRecipients();
        uint256 sum = 0;
        uint256 rest = amount;
        for (uint256 i = 0; i < bps.length; ++i) {
            sum += bps[i];
            if (sum > WHOLE) revert InvalidBasisPoints();
            rest -= amount * bps[i] / WHOLE;
        }
        if (sum != WHOLE) revert InvalidBasisPoints();
        for (uint256 i = 0; i < recipients.length; ++i) {
            uint256 leg = amount * bps[i] / WHOLE;
            _send(batchReference, recipients[i], i == remainderIndex ? leg + rest : leg);
        }
    }

    function _open(bytes32 batchReference, uint256 recipients, uint256 shares) private {
        if (processed[batchReference]) revert BatchAlreadyProcessed(batchReference);
        if (recipients != shares) revert InvalidArrayLengths();
        if (recipients == 0 || recipients > MAX_RECIPIENTS) revert TooManyRecipients();
        processed[batchReference] = true;
    }

    function _send(bytes32 batchReference, address recipient, uint256 amount) private {
        require(token.transferFrom(msg.sender, recipient, amount), "transfer failed");
        emit PayoutSent(batchReference, msg.sender, recipient, amount);
    }
}
