"""What GPUs say of themselves, read out of metrics. Pure: who asks for them is not its business."""
