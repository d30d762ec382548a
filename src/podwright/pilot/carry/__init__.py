"""How a node's record leaves it where no folder is shared."""
