"""Recurrent encoder–decoders: Bahdanau's, Luong's, and one without attention."""
