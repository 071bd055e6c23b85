"""Sign-in of people, and the lifetime of their access."""
