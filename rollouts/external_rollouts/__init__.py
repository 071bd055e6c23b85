"""External rollouts: changes by other tools in clusters of the mode `follow`, observed and evaluated, never written."""
