"""Pulls of driver images before a change: rounds and queries (docs/design/0006)."""
