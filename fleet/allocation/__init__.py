"""What there is of GPUs and who has it: counted, offered by DRA, allocated to pods."""
