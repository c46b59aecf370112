"""The execution engine: it knows no stored chain, no JSON and no network."""
