"""The table of GPUs: every one that a person sees, filtered, sorted and read for page, REST and files alike."""
