#!/bin/sh
# Starts the pilot of one node in a container, where the run's folder lies at the same path; inside.sh goes on there.
job=$(CDPATH= cd -- "${0%/*}" && pwd)
order=${1:-$job/order.json}
run=$(CDPATH= cd -- "${order%/*}/.." && pwd)
cd -- "$run" && mkdir -p -m 0700 -- record lease scratch results checkpoints || exit 73
exec "$PODWRIGHT_PYTHON" -I -S "${PODWRIGHT_PILOT:-$job/pilot.pyz}" contain "$order" \
    podman run --rm --replace --pull=never --sig-proxy=false \
    --name="podwright-$PODWRIGHT_RUN-n$PODWRIGHT_NODE" \
    --label=podwright.run="$PODWRIGHT_RUN" \
    --volume="$run:$run:ro" \
    --volume="$job:$job:ro" \
    --volume="$run"/record:"$run"/record \
    --volume="$run"/lease:"$run"/lease \
    --volume="$run"/scratch:"$run"/scratch \
    --volume="$run"/results:"$run"/results \
    --volume="$run"/checkpoints:"$run"/checkpoints \
    --workdir="$run" \
    --env=HOME="$run/scratch/n$PODWRIGHT_NODE/home" \
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
    /bin/sh "$job/inside.sh" "$order"
