"""Bodies of requests: how much is read for whom, inflating, and forms."""
