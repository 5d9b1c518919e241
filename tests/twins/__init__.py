"""Twins: slow, plain NumPy for what kernsel computes fast; each file is named by what it computes."""
