"""Drivers in a cluster: their controller, the operator, and the owner of each node's driver."""
