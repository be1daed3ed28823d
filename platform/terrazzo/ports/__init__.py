"""The ports: what the platform needs from stores, brokers, bridges, providers, and from whoever runs its tasks."""
