"""Results for people to look at: pictures and tables."""
