"""What makes a running platform of the parts: tasks, lifetimes, assembly."""
