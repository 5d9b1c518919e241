"""Low-rank features that are never held together: sums over blocks of rows."""
