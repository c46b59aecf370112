"""Random blocks of Amsterdam, on fastevm and on a transcription of the rules."""
