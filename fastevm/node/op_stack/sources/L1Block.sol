// SPDX-License-Identifier: MIT
// What an OP-stack chain knows of L1, set by the first deposit of each block (OP Stack specification, L1 attributes).
pragma solidity 0.8.30;

/// The predeploy 0x4200..0015, with the setters of every fork up to Jovian: one fork begins a development chain.
contract L1Block {
    error NotDepositor();

    address public constant DEPOSITOR_ACCOUNT = 0xDeaDDEaDDeAdDeAdDEAdDEaddeAddEAdDEAd0001;
    address private constant ETHER = 0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE;

    // The layout is consensus: execution reads slots 1, 3, 5, 6, 7 and 8.
    uint64 public number;
    uint64 public timestamp;
    uint256 public basefee;
    bytes32 public hash;
    uint64 public sequenceNumber;
    uint32 public blobBaseFeeScalar;
    uint32 public baseFeeScalar;
    bytes32 public batcherHash;
    uint256 public l1FeeOverhead;
    uint256 public l1FeeScalar;
    uint256 public blobBaseFee;
    uint64 public operatorFeeConstant;
    uint32 public operatorFeeScalar;
    uint16 public daFootprintGasScalar;

    function version() external pure returns (string memory) {
        return "1.8.0";
    }

    function gasPayingToken() external pure returns (address, uint8) {
        return (ETHER, 18);
    }

    function gasPayingTokenName() external pure returns (string memory) {
        return "Ether";
    }

    function gasPayingTokenSymbol() external pure returns (string memory) {
        return "ETH";
    }

    function isCustomGasToken() external pure returns (bool) {
        return false;
    }

    function setL1BlockValues(
        uint64 newNumber,
        uint64 newTimestamp,
        uint256 newBasefee,
        bytes32 newHash,
        uint64 newSequenceNumber,
        bytes32 newBatcherHash,
        uint256 newL1FeeOverhead,
        uint256 newL1FeeScalar
    ) external {
        onlyDepositor();
        number = newNumber;
        timestamp = newTimestamp;
        basefee = newBasefee;
        hash = newHash;
        sequenceNumber = newSequenceNumber;
        batcherHash = newBatcherHash;
        l1FeeOverhead = newL1FeeOverhead;
        l1FeeScalar = newL1FeeScalar;
    }

    function setL1BlockValuesEcotone() external {
        setPacked();
    }

    function setL1BlockValuesIsthmus() external {
        setPacked();
        setOperatorFee();
    }

    function setL1BlockValuesJovian() external {
        setPacked();
        setOperatorFee();
        daFootprintGasScalar = uint16(at(176) >> 240);
    }

    /// The arguments are packed, so that a block takes little of L1's space; offsets count the selector.
    function setPacked() private {
        onlyDepositor();
        baseFeeScalar = uint32(at(4) >> 224);
        blobBaseFeeScalar = uint32(at(8) >> 224);
        sequenceNumber = uint64(at(12) >> 192);
        timestamp = uint64(at(20) >> 192);
        number = uint64(at(28) >> 192);
        basefee = at(36);
        blobBaseFee = at(68);
        hash = bytes32(at(100));
        batcherHash = bytes32(at(132));
    }

    function setOperatorFee() private {
        operatorFeeScalar = uint32(at(164) >> 224);
        operatorFeeConstant = uint64(at(168) >> 192);
    }

    function onlyDepositor() private view {
        if (msg.sender != DEPOSITOR_ACCOUNT) revert NotDepositor();
    }

    function at(uint256 offset) private pure returns (uint256 word) {
        assembly {
            word := calldataload(offset)
        }
    }
}
