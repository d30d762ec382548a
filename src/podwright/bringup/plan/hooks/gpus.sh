# Which job has which GPU, as files that dcgm-exporter and jobstats read. Sourced by the prolog and the epilog.
#
# dcgm-exporter (--hpc-job-mapping-dir): a file per GPU, named by its index, holding the job's id.
# jobstats: a file per GPU, named by its index or its MIG device, holding the job's id and the user's number.
# A GPU belongs to one job at a time here; sites that share GPUs between jobs cannot use these files.

# nvml_index MINOR: the exporters count GPUs in the order of their PCI addresses, Slurm by the number of the device file.
nvml_index() {
    found=$1 number=0
    for information in "$PROC"/driver/nvidia/gpus/*/information; do
        [ -r "$information" ] || continue
        while IFS=: read -r name value; do
            [ "$name" = "Device Minor" ] || continue
            # Unquoted to lose the blanks around the number.
            # shellcheck disable=SC2086
            set -- "$1" $value
            [ "$2" = "$1" ] && found=$number
        done <"$information"
        number=$((number + 1))
    done
    echo "$found"
}

# put FILE TEXT: whole or not at all, since an exporter may read at any moment. The new file is made beside the folder,
# where no exporter takes it for a GPU.
put() {
    folder=${1%/*}
    mkdir -p -m 755 -- "$folder" || return
    printf '%s\n' "$2" >"$folder.$$.new" && chmod 644 -- "$folder.$$.new" && mv -f -- "$folder.$$.new" "$1"
}

# drop FILE JOB: only while it still names this job.
drop() {
    [ -r "$1" ] || return 0
    read -r job rest <"$1"
    [ "$job" = "$2" ] && rm -f -- "$1"
    return 0
}

claim() {
    if [ -n "$DCGM_FOLDER" ] && [ "$2" = gpu ]; then put "$DCGM_FOLDER/$1" "$SLURM_JOB_ID"; fi
    if [ -n "$JOBSTATS_FOLDER" ]; then put "$JOBSTATS_FOLDER/$1" "$SLURM_JOB_ID $SLURM_JOB_UID"; fi
}

release() {
    if [ -n "$DCGM_FOLDER" ]; then drop "$DCGM_FOLDER/$1" "$SLURM_JOB_ID"; fi
    if [ -n "$JOBSTATS_FOLDER" ]; then drop "$JOBSTATS_FOLDER/$1" "$SLURM_JOB_ID"; fi
}

# each_gpu DO: calls DO with the index of each GPU of this job, or with its MIG device.
each_gpu() {
    case ${CUDA_VISIBLE_DEVICES:-} in
    MIG-*) given=$CUDA_VISIBLE_DEVICES kind=mig ;;
    *) given=${SLURM_JOB_GPUS:-} kind=gpu ;;
    esac
    old=$IFS IFS=,
    for one in $given; do
        IFS=$old
        case $one in
        *[!0-9A-Za-z-]* | '') continue ;;
        esac
        if [ "$kind" = gpu ]; then one=$(nvml_index "$one"); fi
        "$1" "$one" "$kind"
    done
    IFS=$old
}
