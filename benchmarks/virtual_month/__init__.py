"""A month of a fleet in virtual time: its faults, its people, and the product's own decisions."""
