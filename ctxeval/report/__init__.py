"""Show what an evaluation found."""
