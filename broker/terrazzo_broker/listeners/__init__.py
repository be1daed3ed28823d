"""Where connections come from: one file a transport."""
