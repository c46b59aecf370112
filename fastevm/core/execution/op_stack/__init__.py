"""The OP stack's additions to block execution: L1 fees, deposits, predeploys."""
