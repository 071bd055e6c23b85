"""GPU pods and the room for them: lists, the story of each pod, why one waits for a node, and GPU-hours by use."""
