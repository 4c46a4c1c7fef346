"""The work of commands: streams, many files, resumable output, reports."""
