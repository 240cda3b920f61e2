"""Language models as ctxeval sees them: a protocol, a client, and the loop that calls run on."""
