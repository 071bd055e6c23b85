"""The fleet cut by what its nodes can be told apart by, and such a choice as a label selector."""
