"""What the GPU stack is, as its vendors say: labels, operands, versions, resources, and what goes together. Pure."""
