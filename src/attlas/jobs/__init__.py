"""What a command does: streams, many files, output that can be gone on with, reports."""
