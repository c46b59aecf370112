"""The OP-stack state transition in Python, transcribed from the specifications.

This package does not import fastevm, because it is the second implementation in a differential
test. `machine`, `precompiles` and `transition` run messages on the executable specification of
Ethereum (EELS), which is in a separate environment. The other modules only need Keccak.

Sources: github.com/ethereum-optimism/specs, folder specs/protocol. Docstrings name the page in that
folder, such as "exec-engine".
"""
