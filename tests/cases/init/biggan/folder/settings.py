"""All options of the program."""

from argparse import ArgumentParser


def make_parser() -> ArgumentParser:
    parser = ArgumentParser()
    parser.add_argument("--dataset", type=str, default="I128_hdf5")
    parser.add_argument("--model", choices=["small", "large"], required=True)
    parser.add_argument("--resolution", type=int, default=8)
    parser.add_argument("--num_epochs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--weights_root", type=str, default="weights")
    return parser
