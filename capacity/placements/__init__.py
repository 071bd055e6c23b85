"""The placement of a pool's running pods, measured against the pool's policy."""
