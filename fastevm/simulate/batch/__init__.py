"""Many independent bundles on one state: threads, columns, other machines, capsules."""
