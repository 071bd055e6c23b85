"""Service levels as PromQL: expressions of people, and ready-made ones for inference servers. Pure."""
