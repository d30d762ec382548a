import sys

import cv2
from mpi4py import MPI

print(MPI.COMM_WORLD.allreduce(int(sys.argv[1])), cv2.__version__)
