"""The gateway: between any agent and any provider, calls that conform."""
