"""What was read becomes rows of the database, and whatever else changes with them."""
