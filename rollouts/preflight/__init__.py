"""What a person must know before a plan starts."""
