"""NVIDIA's GPU Operator in NVIDIADriver mode, as read in its source: it moves drivers, and its traps come with it."""
