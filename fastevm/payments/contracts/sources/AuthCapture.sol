// SPDX-License-Identifier: MIT
// An escrow that holds authorized payments until they are captured in parts, voided or reclaimed:
// interface, order of checks, errors, events and hashes are those of the deployed AuthCaptureEscrow
// (v1.1), so that its signatures and clients work with this contract too.
pragma solidity 0.8.30;

/// The terms between payer and merchant. Only their hash is stored on chain.
struct PaymentInfo {
    address operator;
    address payer;
    address receiver;
    address token;
    uint120 maxAmount;
    uint48 preApprovalExpiry;
    uint48 authorizationExpiry;
    uint48 refundExpiry;
    uint16 minFeeBps;
    uint16 maxFeeBps;
    address feeReceiver;
    uint256 salt;
}

interface IERC20Moves {
    function transfer(address to, uint256 value) external returns (bool);
    function transferFrom(address from, address to, uint256 value) external returns (bool);
    function balanceOf(address account) external view returns (uint256);
}

interface IReceive {
    function receiveWithAuthorization(
        address from,
        address to,
        uint256 value,
        uint256 validAfter,
        uint256 validBefore,
        bytes32 nonce,
        bytes calldata signature
    ) external;
}

interface IHashes {
    function getHash(PaymentInfo calldata info) external view returns (bytes32);
}

interface IBatch {
    struct Call {
        address target;
        bytes callData;
    }

    struct Result {
        bool success;
        bytes returnData;
    }

    function tryAggregate(bool requireSuccess, Call[] calldata calls)
        external
        payable
        returns (Result[] memory);
}

/// Token calls that also accept tokens without a return value.
library Moves {
    error TransferFailed();

    function pay(address token, address to, uint256 value) internal {
        _call(token, abi.encodeWithSelector(IERC20Moves.transfer.selector, to, value));
    }

    function pull(address token, address from, address to, uint256 value) internal {
        _call(token, abi.encodeWithSelector(IERC20Moves.transferFrom.selector, from, to, value));
    }

    function _call(address token, bytes memory data) private {
        (bool success, bytes memory answer) = token.call(data);
        if (!success) {
            assembly ("memory-safe") {
                revert(add(answer, 0x20), mload(answer))
            }
        }
        if (answer.length != 0 && !abi.decode(answer, (bool))) revert TransferFailed();
    }
}

/// Holds one operator's tokens; the escrow creates it as a minimal proxy.
contract TokenStore {
    address public immutable authCaptureEscrow;

    error OnlyAuthCaptureEscrow();

    constructor(address escrow) {
        authCaptureEscrow = escrow;
    }

    function sendTokens(address token, address recipient, uint256 amount)
        external
        returns (bool)
    {
        if (msg.sender != authCaptureEscrow) revert OnlyAuthCaptureEscrow();
        Moves.pay(token, recipient, amount);
        return true;
    }
}

/// Collects tokens into a store: payments (0) from the payer, refunds (1) from the operator.
abstract contract TokenCollector {
    enum CollectorType { Payment, Refund }

    address public immutable authCaptureEscrow;

    error OnlyAuthCaptureEscrow();

    constructor(address escrow) {
        authCaptureEscrow = escrow;
    }

    function collectorType() external pure virtual returns (CollectorType);

    function collectTokens(
        PaymentInfo calldata info,
        address tokenStore,
        uint256 amount,
        bytes calldata data
    ) external {
        if (msg.sender != authCaptureEscrow) revert OnlyAuthCaptureEscrow();
        _collect(info, tokenStore, amount, data);
    }

    function _collect(
        PaymentInfo calldata info,
        address tokenStore,
        uint256 amount,
        bytes calldata data
    ) internal virtual;
}

/// Collects with an ERC-3009 authorization, whose nonce is the hash of all terms but the payer.
contract ERC3009PaymentCollector is TokenCollector {
    bytes32 private constant WRAPPED =
        0x6492649264926492649264926492649264926492649264926492649264926492;

    IBatch public immutable multicall3;

    constructor(address escrow, address multicall) TokenCollector(escrow) {
        multicall3 = IBatch(multicall);
    }

    function collectorType() external pure override returns (CollectorType) {
        return CollectorType.Payment;
    }

    function _collect(
        PaymentInfo calldata info,
        address tokenStore,
        uint256 amount,
        bytes calldata data
    ) internal override {
        PaymentInfo memory anybodys = info;
        anybodys.payer = address(0);
        bytes32 nonce = IHashes(authCaptureEscrow).getHash(anybodys);
        IReceive(info.token).receiveWithAuthorization(
            info.payer,
            address(this),
            info.maxAmount,
            0,
            info.preApprovalExpiry,
            nonce,
            _unwrapped(data)
        );
        if (info.maxAmount > amount) {
            Moves.pay(info.token, info.payer, info.maxAmount - amount);
        }
        Moves.pay(info.token, tokenStore, amount);
    }

    /// Returns the inner signature of an ERC-6492 signature; calls its factory, which may fail.
    function _unwrapped(bytes calldata data) private returns (bytes memory) {
        if (data.length < 32 || bytes32(data[data.length - 32:]) != WRAPPED) return data;
        (address factory, bytes memory call, bytes memory inner) =
            abi.decode(data[:data.length - 32], (address, bytes, bytes));
        IBatch.Call[] memory calls = new IBatch.Call[](1);
        calls[0] = IBatch.Call(factory, call);
        multicall3.tryAggregate(false, calls);
        return inner;
    }
}

/// Refunds from the operator's own tokens, with an allowance for this contract.
contract OperatorRefundCollector is TokenCollector {
    constructor(address escrow) TokenCollector(escrow) {}

    function collectorType() external pure override returns (CollectorType) {
        return CollectorType.Refund;
    }

    function _collect(
        PaymentInfo calldata info,
        address tokenStore,
        uint256 amount,
        bytes calldata
    ) internal override {
        Moves.pull(info.token, info.operator, tokenStore, amount);
    }
}

/// Errors, events and hashes.
abstract contract EscrowWords {
    bytes32 public constant PAYMENT_INFO_TYPEHASH = keccak256(
        "PaymentInfo(address operator,address payer,address receiver,address token,uint120 maxAmount,uint48 preApprovalExpiry,uint48 authorizationExpiry,uint48 refundExpiry,uint16 minFeeBps,uint16 maxFeeBps,address feeReceiver,uint256 salt)"
    );

    event PaymentCharged(
        bytes32 indexed paymentInfoHash,
        PaymentInfo paymentInfo,
        uint256 amount,
        address tokenCollector,
        uint256 feeAmount,
        address feeReceiver
    );
    event PaymentAuthorized(
        bytes32 indexed paymentInfoHash,
        PaymentInfo paymentInfo,
        uint256 amount,
        address tokenCollector
    );
    event PaymentCaptured(
        bytes32 indexed paymentInfoHash, uint256 amount, uint256 feeAmount, address feeReceiver
    );
    event PaymentVoided(bytes32 indexed paymentInfoHash, uint256 amount);
    event PaymentReclaimed(bytes32 indexed paymentInfoHash, uint256 amount);
    event PaymentRefunded(bytes32 indexed paymentInfoHash, uint256 amount, address tokenCollector);
    event TokenStoreCreated(address indexed operator, address tokenStore);

    error InvalidSender(address sender, address expected);
    error ZeroAmount();
    error AmountOverflow(uint256 amount, uint256 limit);
    error ExceedsMaxAmount(uint256 amount, uint256 maxAmount);
    error AfterPreApprovalExpiry(uint48 timestamp, uint48 expiry);
    error InvalidExpiries(uint48 preApproval, uint48 authorization, uint48 refund);
    error FeeBpsOverflow(uint16 feeBps);
    error InvalidFeeBpsRange(uint16 minFeeBps, uint16 maxFeeBps);
    error FeeAmountOutOfRange(uint256 feeAmount, uint256 minFee, uint256 maxFee);
    error ZeroFeeReceiver();
    error InvalidFeeReceiver(address attempted, address expected);
    error InvalidCollectorForOperation();
    error TokenCollectionFailed();
    error PaymentAlreadyCollected(bytes32 paymentInfoHash);
    error AfterAuthorizationExpiry(uint48 timestamp, uint48 expiry);
    error InsufficientAuthorization(bytes32 paymentInfoHash, uint256 authorized, uint256 requested);
    error ZeroAuthorization(bytes32 paymentInfoHash);
    error BeforeAuthorizationExpiry(uint48 timestamp, uint48 expiry);
    error AfterRefundExpiry(uint48 timestamp, uint48 expiry);
    error RefundExceedsCapture(uint256 refund, uint256 captured);
    error Reentrancy();

    /// The hash of the terms, bound to this chain and contract.
    function getHash(PaymentInfo memory info) public view returns (bytes32) {
        bytes32 terms = keccak256(abi.encode(PAYMENT_INFO_TYPEHASH, info));
        return keccak256(abi.encode(block.chainid, address(this), terms));
    }
}

/// Token stores, one per operator, and the transfers into and out of them.
abstract contract EscrowStores is EscrowWords {
    address public immutable tokenStoreImplementation;

    /// `store` is a TokenStore of this contract; for the zero address one is created.
    constructor(address store) {
        tokenStoreImplementation =
            store == address(0) ? address(new TokenStore(address(this))) : store;
    }

    /// The address of an operator's store, deployed or not.
    function getTokenStore(address operator) public view returns (address) {
        bytes32 code = keccak256(_clone());
        bytes32 salt = bytes32(bytes20(operator));
        bytes32 place = keccak256(abi.encodePacked(hex"ff", address(this), salt, code));
        return address(uint160(uint256(place)));
    }

    /// Creation code of a minimal proxy (ERC-1167) of the implementation.
    function _clone() private view returns (bytes memory) {
        return abi.encodePacked(
            hex"3d602d80600a3d3981f3363d3d373d3d3d363d73",
            tokenStoreImplementation,
            hex"5af43d82803e903d91602b57fd5bf3"
        );
    }

    function _send(address operator, address token, address recipient, uint256 amount) internal {
        address store = getTokenStore(operator);
        if (store.code.length == 0) {
            bytes memory code = _clone();
            bytes32 salt = bytes32(bytes20(operator));
            assembly ("memory-safe") {
                store := create2(0, add(code, 0x20), mload(code), salt)
            }
            emit TokenStoreCreated(operator, store);
        }
        TokenStore(store).sendTokens(token, recipient, amount);
    }

    /// Collects exactly `amount` into the store; reverts if the balance differs.
    function _collect(
        PaymentInfo calldata info,
        uint256 amount,
        TokenCollector.CollectorType kind,
        address collector,
        bytes calldata data
    ) internal {
        if (TokenCollector(collector).collectorType() != kind) {
            revert InvalidCollectorForOperation();
        }
        address store = getTokenStore(info.operator);
        uint256 before = IERC20Moves(info.token).balanceOf(store);
        TokenCollector(collector).collectTokens(info, store, amount, data);
        if (IERC20Moves(info.token).balanceOf(store) != before + amount) {
            revert TokenCollectionFailed();
        }
    }

    function _distribute(
        PaymentInfo calldata info,
        uint256 amount,
        uint256 feeAmount,
        address feeReceiver
    ) internal {
        if (feeAmount > 0) _send(info.operator, info.token, feeReceiver, feeAmount);
        if (amount > feeAmount) {
            _send(info.operator, info.token, info.receiver, amount - feeAmount);
        }
    }
}

contract AuthCaptureEscrow is EscrowStores {
    struct PaymentState {
        bool hasCollectedPayment;
        uint120 capturableAmount;
        uint120 refundableAmount;
    }

    uint256 private constant WHOLE = 10_000; // basis points

    mapping(bytes32 => PaymentState) public paymentState;
    uint256 private _entered;

    constructor(address store) EscrowStores(store) {}

    /// Checks reentrancy, then the sender, then the amount.
    modifier only(address expected) {
        if (_entered != 0) revert Reentrancy();
        _entered = 1;
        if (msg.sender != expected) revert InvalidSender(msg.sender, expected);
        _;
        _entered = 0;
    }

    modifier validAmount(uint256 amount) {
        if (amount == 0) revert ZeroAmount();
        if (amount > type(uint120).max) revert AmountOverflow(amount, type(uint120).max);
        _;
    }

    /// Collects and pays out immediately; the payment can be refunded until the refund expiry.
    function charge(
        PaymentInfo calldata info,
        uint256 amount,
        address tokenCollector,
        bytes calldata collectorData,
        uint256 feeAmount,
        address feeReceiver
    ) external only(info.operator) validAmount(amount) {
        _checkTerms(info, amount);
        _checkFee(info, amount, feeAmount, feeReceiver);
        bytes32 key = _first(info);
        paymentState[key] = PaymentState(true, 0, uint120(amount));
        emit PaymentCharged(key, info, amount, tokenCollector, feeAmount, feeReceiver);
        _collect(info, amount, TokenCollector.CollectorType.Payment, tokenCollector, collectorData);
        _distribute(info, amount, feeAmount, feeReceiver);
    }

    /// Collects and holds.
    function authorize(
        PaymentInfo calldata info,
        uint256 amount,
        address tokenCollector,
        bytes calldata collectorData
    ) external only(info.operator) validAmount(amount) {
        _checkTerms(info, amount);
        bytes32 key = _first(info);
        paymentState[key] = PaymentState(true, uint120(amount), 0);
        emit PaymentAuthorized(key, info, amount, tokenCollector);
        _collect(info, amount, TokenCollector.CollectorType.Payment, tokenCollector, collectorData);
    }

    /// Pays out a part of the held amount; can be repeated.
    function capture(
        PaymentInfo calldata info,
        uint256 amount,
        uint256 feeAmount,
        address feeReceiver
    ) external only(info.operator) validAmount(amount) {
        _checkFee(info, amount, feeAmount, feeReceiver);
        if (block.timestamp >= info.authorizationExpiry) {
            revert AfterAuthorizationExpiry(uint48(block.timestamp), info.authorizationExpiry);
        }
        bytes32 key = getHash(info);
        PaymentState storage state = paymentState[key];
        if (state.capturableAmount < amount) {
            revert InsufficientAuthorization(key, state.capturableAmount, amount);
        }
        state.capturableAmount -= uint120(amount);
        state.refundableAmount += uint120(amount);
        emit PaymentCaptured(key, amount, feeAmount, feeReceiver);
        _distribute(info, amount, feeAmount, feeReceiver);
    }

    /// Returns the whole held amount to the payer.
    function void(PaymentInfo calldata info) external only(info.operator) {
        (bytes32 key, uint256 amount) = _release(info);
        emit PaymentVoided(key, amount);
        _send(info.operator, info.token, info.payer, amount);
    }

    /// The payer takes the held amount back after the authorization's expiry.
    function reclaim(PaymentInfo calldata info) external only(info.payer) {
        if (block.timestamp < info.authorizationExpiry) {
            revert BeforeAuthorizationExpiry(uint48(block.timestamp), info.authorizationExpiry);
        }
        (bytes32 key, uint256 amount) = _release(info);
        emit PaymentReclaimed(key, amount);
        _send(info.operator, info.token, info.payer, amount);
    }

    /// Refunds captured money from the operator's own tokens.
    function refund(
        PaymentInfo calldata info,
        uint256 amount,
        address tokenCollector,
        bytes calldata collectorData
    ) external only(info.operator) validAmount(amount) {
        if (block.timestamp >= info.refundExpiry) {
            revert AfterRefundExpiry(uint48(block.timestamp), info.refundExpiry);
        }
        bytes32 key = getHash(info);
        uint120 captured = paymentState[key].refundableAmount;
        if (captured < amount) revert RefundExceedsCapture(amount, captured);
        paymentState[key].refundableAmount = captured - uint120(amount);
        emit PaymentRefunded(key, amount, tokenCollector);
        _collect(info, amount, TokenCollector.CollectorType.Refund, tokenCollector, collectorData);
        _send(info.operator, info.token, info.payer, amount);
    }

    function _checkTerms(PaymentInfo calldata info, uint256 amount) private view {
        if (amount > info.maxAmount) revert ExceedsMaxAmount(amount, info.maxAmount);
        if (block.timestamp >= info.preApprovalExpiry) {
            revert AfterPreApprovalExpiry(uint48(block.timestamp), info.preApprovalExpiry);
        }
        if (
            info.preApprovalExpiry > info.authorizationExpiry
                || info.authorizationExpiry > info.refundExpiry
        ) {
            revert InvalidExpiries(
                info.preApprovalExpiry, info.authorizationExpiry, info.refundExpiry
            );
        }
        if (info.maxFeeBps > WHOLE) revert FeeBpsOverflow(info.maxFeeBps);
        if (info.minFeeBps > info.maxFeeBps) {
            revert InvalidFeeBpsRange(info.minFeeBps, info.maxFeeBps);
        }
    }

    function _checkFee(
        PaymentInfo calldata info,
        uint256 amount,
        uint256 feeAmount,
        address feeReceiver
    ) private pure {
        uint256 least = amount * info.minFeeBps / WHOLE;
        uint256 most = amount * info.maxFeeBps / WHOLE;
        if (feeAmount < least || feeAmount > most) {
            revert FeeAmountOutOfRange(feeAmount, least, most);
        }
        if (feeAmount > 0 && feeReceiver == address(0)) revert ZeroFeeReceiver();
        if (info.feeReceiver != address(0) && info.feeReceiver != feeReceiver) {
            revert InvalidFeeReceiver(feeReceiver, info.feeReceiver);
        }
    }

    function _first(PaymentInfo calldata info) private view returns (bytes32 key) {
        key = getHash(info);
        if (paymentState[key].hasCollectedPayment) revert PaymentAlreadyCollected(key);
    }

    function _release(PaymentInfo calldata info) private returns (bytes32 key, uint256 amount) {
        key = getHash(info);
        amount = paymentState[key].capturableAmount;
        if (amount == 0) revert ZeroAuthorization(key);
        paymentState[key].capturableAmount = 0;
    }
}
