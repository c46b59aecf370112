"""What OP-stack chains add to the execution of blocks: L1 fees, deposits, predeploys."""
