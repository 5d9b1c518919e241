"""Ends the process at import, as a script without a main guard does."""

raise SystemExit("usage: acme-exits FILE\n  FILE  a table")
