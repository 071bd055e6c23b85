"""Checks of what is seen on the nodes: facts in, checks out. Pure."""
