"""Who watches a cluster, and how long: the turn, the list-watch it holds, the worker it runs in."""
