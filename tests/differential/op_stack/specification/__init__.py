"""The OP-stack state transition in Python, transcribed from the specifications.

This package does not import the product, because it is the independent side of a differential test.
`machine`, `precompiles` and `transition` run messages on the executable specification of Ethereum,
which is in a separate environment. The other modules only need Keccak.

Sources: github.com/ethereum-optimism/specs, folder specs/protocol. A docstring names its page.
"""
