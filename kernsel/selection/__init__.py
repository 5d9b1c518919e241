"""A selection from beginning to end: kernels are made, searched, verified and chosen, and the winner is fitted."""
