"""Free GPUs, and which pods could use them now."""
