"""What held-out outputs say: errors, metrics, probabilities, intervals and the spread of each."""
