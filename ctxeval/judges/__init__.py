"""The judges: who says which chunks are relevant and what of the reference they cover."""
