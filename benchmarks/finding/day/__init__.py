"""A simulated day: what is planted in a fleet, and what the product finds of it."""
