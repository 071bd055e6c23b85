"""The watch lease of a cluster: the lease, the list-watch under it, and its worker."""
