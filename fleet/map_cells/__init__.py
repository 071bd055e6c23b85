"""The map's cells: one byte per GPU, updated with every node write."""
