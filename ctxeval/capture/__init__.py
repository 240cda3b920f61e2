"""From a framework's events to scored records, behind the application's back."""
