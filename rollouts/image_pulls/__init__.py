"""Images that are pulled beforehand: the rounds that do it, and what is read of them (docs/design/0006)."""
