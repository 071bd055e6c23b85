"""Who watches a cluster, and how long: the lease, the list-watch held under it, the worker it runs in."""
