"""The square loss: every fit, every fold and every derivative has a closed form."""
