"""What all Jobs of ours have in common: one pod on one node, once, and whose they are."""
