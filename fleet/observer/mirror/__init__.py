"""The mapping from API objects to rows: stored fields, changes, and known rows."""
