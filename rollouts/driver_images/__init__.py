"""Pulling the driver's image before it is needed: which image, by which Job, and what its pod tells. Pure."""
