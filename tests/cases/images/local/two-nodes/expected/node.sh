#!/bin/sh
# Starts the pilot of one node in a container, where the run's folder lies at the same path; inside.sh goes on there.
job=$(CDPATH= cd -- "${0%/*}" && pwd)
order=${1:-$job/order.json}
run=$(CDPATH= cd -- "${order%/*}/.." && pwd)
cd -- "$run" && mkdir -p -m 0700 -- record lease scratch results '/shared/check points' || exit 73
exec "$PODWRIGHT_PYTHON" -I -S "${PODWRIGHT_PILOT:-$job/pilot.pyz}" contain "$order" \
    podman --runtime=runc run --rm --replace --pull=never --sig-proxy=false \
    --name="podwright-$PODWRIGHT_RUN-n$PODWRIGHT_NODE" \
    --label=podwright.run="$PODWRIGHT_RUN" \
    --volume="$run:$run:ro" \
    --volume="$job:$job:ro" \
    --volume="$run"/record:"$run"/record \
    --volume="$run"/lease:"$run"/lease \
    --volume="$run"/scratch:"$run"/scratch \
    --volume="$run"/results:"$run"/results \
    --workdir="$run" \
    --env=HOME="$run/scratch/n$PODWRIGHT_NODE/home" \
    --user=0:0 \
    --network=host \
    --pid=host \
    --volume=/dev/shm:/dev/shm \
    --pids-limit=-1 \
    --security-opt=label=disable \
    --security-opt=seccomp=unconfined \
    --read-only \
    --ulimit=nofile=20000:20000 \
    --ulimit=nproc=32768:32768 \
    --ulimit=memlock=8388608:8388608 \
    --env=PODWRIGHT_RUN \
    --env=PODWRIGHT_NODE \
    --env=PODWRIGHT_RESTART \
    --env=PODWRIGHT_JOB \
    --env=PODWRIGHT_HOST \
    --env=PODWRIGHT_LEADER \
    --env=PODWRIGHT_TOKEN_FILE \
    --env=CUDA_VISIBLE_DEVICES \
    --env=WANDB_API_KEY \
    --volume=/data/a2d2:/data/a2d2:ro \
    '--volume=/shared/check points:/shared/check points' \
    --entrypoint= \
    sha256:22 \
    /bin/sh "$job/inside.sh" "$order"
