"""GPU pods and the room for them: lists, the story of each pod, why one waits, free GPUs, and GPU-hours by use."""
