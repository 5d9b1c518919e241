"""Smooth convex losses: fits by Newton steps, and what one fit says of the folds."""
