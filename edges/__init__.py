"""What every page and every REST view is made of. It knows no app."""
