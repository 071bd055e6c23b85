"""Checks of the facts on nodes. Pure."""
