"""Recurrent encoder–decoders: Bahdanau's, Luong's, and the plain one that cannot look."""
