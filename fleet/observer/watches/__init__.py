"""What the API server says of a cluster, until it is written: lists and watches, one queue, what waits."""
