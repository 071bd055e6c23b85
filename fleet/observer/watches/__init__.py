"""Lists and watches of a cluster, and their queue of unwritten changes."""
