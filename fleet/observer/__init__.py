"""The observer: observed changes of a cluster's objects become rows."""
