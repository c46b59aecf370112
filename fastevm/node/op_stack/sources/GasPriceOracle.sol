// SPDX-License-Identifier: MIT
// Fees of an OP-stack chain from Isthmus on; everything older is the oracle of Fjord's.
pragma solidity 0.8.30;

interface IL1Block {
    function operatorFeeScalar() external view returns (uint32);

    function operatorFeeConstant() external view returns (uint64);
}

/// The predeploy 0x4200..000F: flags of forks, the operator fee, and a delegation to the code of Fjord's oracle.
contract GasPriceOracle {
    IL1Block private constant L1_BLOCK = IL1Block(0x4200000000000000000000000000000000000015);
    address private constant FJORD_ORACLE = 0xc0d3C0d3C0d3c0D3C0D3C0d3C0d3C0D3C0D3000f;
    uint256 private constant MILLION = 1e6;
    uint256 private constant JOVIAN_MULTIPLIER = 100;

    // The layout of slot 0 is that of the deployed oracles.
    bool public isEcotone;
    bool public isFjord;
    bool public isIsthmus;
    bool public isJovian;

    function version() external pure returns (string memory) {
        return "1.6.0";
    }

    /// The operator fee in wei of a transaction that uses so much gas; see the specification, Isthmus and Jovian.
    function getOperatorFee(uint256 gasUsed) external view returns (uint256) {
        if (!isIsthmus) return 0;
        uint256 scaled = gasUsed * L1_BLOCK.operatorFeeScalar();
        scaled = isJovian ? scaled * JOVIAN_MULTIPLIER : scaled / MILLION;
        return scaled + L1_BLOCK.operatorFeeConstant();
    }

    fallback() external {
        address oracle = FJORD_ORACLE;
        assembly {
            calldatacopy(0, 0, calldatasize())
            let done := delegatecall(gas(), oracle, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            if iszero(done) {
                revert(0, returndatasize())
            }
            return(0, returndatasize())
        }
    }
}
