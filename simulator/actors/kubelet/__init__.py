"""All kubelets of the fleet in one actor: a pod's start is a script, a running pod costs nothing."""
