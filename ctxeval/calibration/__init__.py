"""How far a judge agrees with people, and what that means for its numbers."""
