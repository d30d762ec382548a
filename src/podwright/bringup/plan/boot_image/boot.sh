# How a host gets its root from the network: the image goes into memory and is checked there, and what the host writes
# lies over it. Part of the initrd, read by its sh when the kernel is told boot=podwright.

mount_top() { :; }
mount_premount() { :; }
mount_bottom() { :; }

podwright_argument() {
    for word in $(cat /proc/cmdline); do
        case $word in "podwright.$1="*) echo "${word#*=}" ;; esac
    done
}

podwright_fetch() {
    for try in 1 2 3 4 5; do
        wget -q -O "$2" "$1" && return
        echo "podwright: $1: try $try failed"
        sleep 2
    done
    panic "podwright: $1 cannot be fetched"
}

mountroot() {
    url=$(podwright_argument url)
    run=/run/podwright
    wait_for_udev 10
    modprobe -a loop squashfs overlay
    configure_networking

    mkdir -p "$run/memory" "$run/image"
    mount -t tmpfs -o mode=0755,size=80% podwright "$run/memory"
    mkdir "$run/memory/written" "$run/memory/work"
    podwright_fetch "$url/files/$(podwright_argument image)/root.squashfs" "$run/memory/root"
    echo "$(podwright_argument digest)  $run/memory/root" | sha256sum -c -s || panic "podwright: the image is damaged"
    mount -t squashfs -o ro,loop "$run/memory/root" "$run/image"
    layers=lowerdir=$run/image,upperdir=$run/memory/written,workdir=$run/memory/work
    # A host whose root no handle of NFS can be made for exports nothing at all, not even its disks.
    mount -t overlay -o "$layers,index=on,nfs_export=on" podwright "$rootmnt"

    # Who this host is, and who may log in.
    host=$(podwright_argument host)
    podwright_fetch "$url/hosts/$host.sh" "$run/host.sh"
    chroot "$rootmnt" /bin/bash -e <"$run/host.sh" || panic "podwright: the settings of $host failed"
    [ -z "$(podwright_argument disk)" ] || podwright_fetch "$url/answers/$host.done.sh" "$run/done.sh"
}
