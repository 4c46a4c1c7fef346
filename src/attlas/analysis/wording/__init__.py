"""What a map shows, said in words."""
