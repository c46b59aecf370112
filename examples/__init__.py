"""Programs that show what fastevm is for; each can be started from the root of the project."""
