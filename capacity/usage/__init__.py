"""Used, idle and free GPU-hours of a period, and their cost."""
