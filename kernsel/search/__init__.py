"""Searches: they walk the candidates."""
