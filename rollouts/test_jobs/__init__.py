"""A test Job on a node that changed: which Job, and what its pod tells."""
