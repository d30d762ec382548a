#!/bin/sh
# Starts the pilot of one node in a container, where the run's folder lies at the same path; inside.sh goes on there.
job=$(CDPATH= cd -- "${0%/*}" && pwd)
run=${job%/*}
home=$run/scratch/n$PODWRIGHT_NODE/home
mkdir -p -m 0700 "$home" || exit 1
exec "$PODWRIGHT_PYTHON" -I -S "$job/container.py" \
    podman run --rm --replace --pull=never --sig-proxy=false \
    --name="podwright-$PODWRIGHT_RUN-n$PODWRIGHT_NODE" \
    --label=podwright.run="$PODWRIGHT_RUN" \
    --volume="$run:$run" \
    --workdir="$run" \
    --env=HOME="$home" \
    --userns=keep-id \
    --user=1000:100 \
    --network=host \
    --pid=host \
    --shm-size=8589934592 \
    --security-opt=label=disable \
    --security-opt=seccomp=unconfined \
    --read-only \
    --ulimit=nofile=1024:4096 \
    --device=nvidia.com/gpu=all \
    --device=/dev/infiniband \
    --cap-add=IPC_LOCK \
    --env=PODWRIGHT_RUN \
    --env=PODWRIGHT_NODE \
    --env=PODWRIGHT_RESTART \
    --env=PODWRIGHT_JOB \
    --env=PODWRIGHT_HOST \
    --env=PODWRIGHT_LEADER \
    --env=PODWRIGHT_TOKEN_FILE \
    --env=CUDA_VISIBLE_DEVICES \
    --entrypoint= \
    sha256:44 \
    /bin/sh "$job/inside.sh"
