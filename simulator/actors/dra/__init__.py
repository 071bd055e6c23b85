"""Dynamic Resource Allocation: who publishes devices, who claims them, and who gives them out."""
