"""What no case file says: the border to Python, the size of the state, whole blocks, threads."""
