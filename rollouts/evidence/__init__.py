"""The evidence file of a plan: exported from rows, and verified from the file alone."""
