"""Pools: made and changed by people or from a file, suggested by what is there, and which nodes each one has."""
