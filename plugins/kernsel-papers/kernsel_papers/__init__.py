"""The experiments of papers on kernel selection, and what they print: for ``kernsel compare --protocol``."""
