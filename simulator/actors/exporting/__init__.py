"""dcgm-exporters: what they are set to write, what their GPUs do, and the text of it."""
