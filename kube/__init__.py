"""Kubernetes: its client, our structs of its objects, and its notations."""
