"""Cases: a sick node from suspect to back in service, with its repairs and validations."""
