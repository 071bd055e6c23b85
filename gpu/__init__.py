"""The vendors' conventions of the GPU stack: labels, operands, versions, resources and compatibility. Pure."""
