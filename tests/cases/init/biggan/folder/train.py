"""A generator and a discriminator in the manner of large image models: options live in a module beside it."""

import json

import numpy as np
import settings
from models import Generator


def main() -> None:
    options = vars(settings.make_parser().parse_args())
    generator = Generator(options["resolution"], np.random.default_rng(options["seed"]))
    for epoch in range(1, options["num_epochs"] + 1):
        print(json.dumps({"podwright": {"epoch": epoch, "loss": generator.step()}}), flush=True)
    generator.save(options["weights_root"])


main()
