"""Long requests, read a turn of the loop at a time."""
