"""The reason why a pod waits for a node, recomputed from the rows of its cluster. Pure."""
