"""Other libraries' names over fastevm."""
