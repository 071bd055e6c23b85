"""Segments of the fleet by attributes of nodes, and their label selectors."""
