"""How a request becomes an answer: routes, typed requests, pages, the application."""
