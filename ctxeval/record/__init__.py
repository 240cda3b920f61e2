"""What was captured from an application, and what was expected of it."""
