"""From a batch of publishes to durable records and acknowledgements."""
