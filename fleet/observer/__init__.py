"""The mirror: a cluster's objects, as they are seen to change, become rows."""
