"""The list of GPU pods: its filter, rows and file."""
