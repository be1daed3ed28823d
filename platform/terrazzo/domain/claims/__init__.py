"""Claims: how terminals that nobody has registered come in."""
