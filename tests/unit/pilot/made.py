"""Orders for tests."""

from podwright.pilot.protocol import Order

ORDER = Order(
    run="toy-2222",
    engine="local",
    nodes=2,
    ranks_per_node=2,
    launcher="ranks",
    command=["true"],
    folder="..",
    scratch="../scratch",
    shared=True,
    bind="127.0.0.1",
    checkpoint="checkpoints",
)
