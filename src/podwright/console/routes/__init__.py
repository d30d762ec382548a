"""What there is to ask: one table of routes, from which router, rights, OpenAPI and client are made."""
