"""Demo on real text: the language reference that CPython carries in `pydoc_data`."""
