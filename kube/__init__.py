"""Kubernetes: its client, what we keep of its objects, and how it and its programs write things."""
