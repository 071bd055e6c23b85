"""Telemetry sources: their schedule, their addresses and secrets, and the storage of the newest snapshot."""
