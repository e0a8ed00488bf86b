"""The built site in a real browser, and what can be read from its files (marker `browser`)."""
