"""The seams: what the platform needs from stores, brokers, bridges, providers and whoever runs its tasks."""
