"""GPU pods and the room for them: lists, the story of each pod, and why one waits for a node."""
