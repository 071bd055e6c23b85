"""Live checks of a draft against its cluster before the start."""
