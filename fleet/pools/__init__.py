"""Pools: changes by people or files, suggestions, and membership."""
