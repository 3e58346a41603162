"""A Muster peer written from docs/PROTOCOL.md alone. Section numbers are those of that document."""
