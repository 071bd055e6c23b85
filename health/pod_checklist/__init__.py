"""The checklist of a GPU pod: why its program gets no GPU, or runs out of memory."""
