"""What stands between the platform and outside systems."""
