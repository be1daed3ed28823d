"""What is said of variables."""
