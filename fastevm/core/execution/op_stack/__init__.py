"""The additions of the OP Stack to block execution: L1 fees, deposits and predeploys."""
