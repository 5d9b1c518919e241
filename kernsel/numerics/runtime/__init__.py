"""What compiled loops run on: Numba and its cache, threads, BLAS, values that are computed once."""
