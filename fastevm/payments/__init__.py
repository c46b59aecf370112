"""Payments: authorize now (EIP-3009), capture later."""
