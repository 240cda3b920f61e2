"""Many samples: what their scores say together."""
