"""What an attention map says, found out block by block: no more of a map than a few rows is ever
held."""
