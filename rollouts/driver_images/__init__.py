"""The driver's image and the Job that pulls it to a node before the change. Pure."""
