"""What says which driver runs in a cluster, which operator acts on it, and which nodes are whose."""
