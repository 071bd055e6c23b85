"""Kubernetes: its client, what we keep of its objects, and how it writes selectors and quantities."""
