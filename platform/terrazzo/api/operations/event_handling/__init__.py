"""What people do about many events at once."""
