"""What the operating system gives and asks: memory, and signals to stop."""
