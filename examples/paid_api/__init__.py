"""An x402 API: an answer for a cent, and a hotel booking whose price is held, then captured."""
