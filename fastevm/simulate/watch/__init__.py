"""Standing simulations: questions whose answers stay fresh while the base moves."""
