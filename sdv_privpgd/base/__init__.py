"""What every other package may use: domains, checks, progress, words, and damaged files."""
