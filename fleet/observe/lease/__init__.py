"""Who watches a cluster, and how long: the turn, the window it holds, the worker it runs in."""
