"""What every other package may use: domains, checks of arguments, progress, and words for pages."""
