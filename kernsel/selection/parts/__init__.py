"""A selection of the square loss at a low rank on rows that are never in one place."""
