"""Who may do what: rights, sessions and tokens, and an audit of every act."""
