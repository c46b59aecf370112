"""Standing simulations beside full runs, on random chains."""
