"""The OP-stack state transition in Python, transcribed from the specifications.

Nothing here imports the product: it is the independent side of a differential test. `machine`,
`precompiles` and `transition` run messages on the executable specification of Ethereum, which lives
in a separate environment; the other modules need a Keccak only.

Sources: github.com/ethereum-optimism/specs, folder specs/protocol. A docstring names its page.
"""
