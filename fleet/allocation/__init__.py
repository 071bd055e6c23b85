"""GPUs and their users: counts, devices of DRA, and allocations to pods."""
