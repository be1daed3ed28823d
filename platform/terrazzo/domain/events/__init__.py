"""What is said of events beside their mapping."""
