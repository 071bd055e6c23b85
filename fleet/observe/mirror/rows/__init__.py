"""What a row says of an object: one pure file a kind, struct in, columns out."""
