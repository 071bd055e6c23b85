"""Which releases the cluster is made of."""

KUBERNETES = "v1.37.2"
CONTAINERD = "2.3.7"
