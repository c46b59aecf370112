"""A paid API by x402: answers for a cent, and a room whose price is held and captured later."""
