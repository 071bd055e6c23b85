"""Rollouts that others drive, in clusters that may only be followed: seen and judged, and nothing of theirs written."""
