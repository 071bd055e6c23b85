"""What a plan was approved on, as a file that proves itself: written from rows, verified from the file alone."""
