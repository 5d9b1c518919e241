"""What stands for the Gram matrix of a kernel: the matrix itself, low-rank features of it, or blocks of these."""
