"""The fleet: clusters, pools, nodes, GPUs and pods, and the workers that observe them."""
