"""Actions about terminals that need care: those out of service, and what they send and are sent."""
