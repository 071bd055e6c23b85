"""An object of the API becomes a row: what is kept of it, what is new about it, what is known of it already."""
