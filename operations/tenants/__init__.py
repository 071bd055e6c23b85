"""The work that tenants lose with a node."""
