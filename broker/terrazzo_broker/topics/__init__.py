"""Topic names and filters, and what is subscribed to and retained under them."""
