"""What happens on a node: the lives of driver and operand pods, and what their being ready means."""
