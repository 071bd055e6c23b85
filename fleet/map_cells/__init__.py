"""What the map draws of each node, a byte a GPU: made of its counts, kept by whoever writes nodes."""
