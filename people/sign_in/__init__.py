"""How a person is let in, and for how long that holds."""
