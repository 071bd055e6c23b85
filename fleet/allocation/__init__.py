"""What there is of GPUs and who has it: counted, offered by DRA, held by pods."""
