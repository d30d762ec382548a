"""A PyTorch loader over the data of a run, which every rank can import as `podwright_data`.

    from podwright_data import Loader, SampleFolder
    loader = Loader(SampleFolder(folder, decode), batch_size=32, seed=1).to("cuda")
    for epoch in range(loader.epoch, 10):
        for batch in loader:
            ...
            save({"loader": loader.state_dict(), ...})

Standard library and torch alone; pyarrow for Parquet. A sample is a dictionary: of a folder the bytes of its files by
role, of a tar shard those of its members by suffix, of Parquet a row. `decode` makes of it what the program wants, and
is given a mapping that reads a file when it is asked for.

The order of an epoch follows from seed and epoch, not from the ranks: a step takes the next samples of all, and each
rank its share of them. So the state is one number, how many were taken, and a run goes on with any number of ranks.
"""

from .epochs import EpochOrder, Permutation
from .samples import LazySample, SampleFolder
from .steps import Loader, RankPlace, share

__all__ = ["EpochOrder", "LazySample", "Loader", "Permutation", "RankPlace", "SampleFolder", "share"]
