"""The state of a chain that another node holds: fetched in few round trips, kept on disk."""
