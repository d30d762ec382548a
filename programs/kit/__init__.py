"""What the training programs share: ranks, options, precision, checkpoints, step times, what is told, and the loop.

Each program's folder has a link to this one, so that a program runs as it lies there and can be copied whole
(`cp -rL programs/resnet mine`).
"""
