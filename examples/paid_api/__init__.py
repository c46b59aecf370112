"""An x402 API that sells an answer for a cent, and a hotel booking with a hold on the price."""
