#!/bin/sh
# Looks whether this node may take jobs; drains it with the reason if not, and then ends with 1. Called by the prolog
# and the epilog; as HealthCheckProgram it also looks at nodes that are idle. What is looked at stands in hooks.conf.
# With `look` it drains nothing, and prints the reason.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
hooks=$(dirname -- "$0")
. "$hooks/hooks.conf"

# Each check prints what is wrong, or nothing.

gpus() {
    number=0
    while [ "$number" -lt "$GPUS" ]; do
        [ -c "$GPU_DEVICES$number" ] || echo "GPU $number is gone: there is no $GPU_DEVICES$number"
        number=$((number + 1))
    done
    # A GPU that fell off its bus may leave its device file behind; the driver knows.
    [ "$GPUS" -gt 0 ] && [ -n "$NVIDIA_SMI" ] && [ -x "$NVIDIA_SMI" ] || return
    seen=$(timeout -k 5 30 "$NVIDIA_SMI" --list-gpus 2>/dev/null | while read -r word rest; do
        [ "$word" = GPU ] && echo "$rest"
    done | wc -l)
    [ "$((seen))" -ge "$GPUS" ] || echo "the driver shows $((seen)) of $GPUS GPUs"
}

memory() {
    while read -r name kib rest; do
        [ "$name" = MemTotal: ] || continue
        [ "$((kib / 1024))" -ge "$MEMORY_MIB" ] || echo "memory is $((kib / 1024)) MiB, less than $MEMORY_MIB"
    done <"$PROC/meminfo"
}

mounts() {
    for wanted in $MOUNTS; do
        found=
        while read -r device folder rest; do
            [ "$folder" = "$wanted" ] && found=yes
        done <"$PROC/mounts"
        [ -n "$found" ] || echo "$wanted is not mounted"
    done
}

space() {
    for wanted in $FREE_MIB; do
        folder=${wanted%=*} least=${wanted##*=}
        free=$(df -P -m -- "$folder" 2>/dev/null | { read -r head && read -r device size used free rest && echo "$free"; })
        [ "${free:-0}" -ge "$least" ] || echo "$folder has ${free:-no} MiB free, less than $least"
    done
}

wrong=$(gpus; memory; mounts; space)
[ -n "$wrong" ] || exit 0
reason=$(printf '%s\n' "$wrong" | head -n 3 | paste -s -d ';' -)
if [ "${1:-}" = look ]; then
    echo "$reason"
    exit 1
fi
node=${SLURMD_NODENAME:-$(hostname -s)}
"$SCONTROL" update NodeName="$node" State=DRAIN Reason="podwright: $reason"
exit 1
