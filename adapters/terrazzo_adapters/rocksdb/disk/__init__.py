"""What of the disk is whose."""
