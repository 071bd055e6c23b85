"""The fleet as the clusters show it: clusters, pools, nodes, GPUs and pods, and the workers that observe them."""
