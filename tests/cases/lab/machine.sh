#!/bin/sh
# NAME ADDRESS HUB: a machine of the lab; HUB is the hub's process 1 as the outside counts
set -eu
cd /
echo "$1" >/proc/sys/kernel/hostname
mount -n -t tmpfs -o mode=1777 shm /dev/shm
bridge="nsenter --net=/proc/$3/ns/net ip link"
# The wire of a machine that was just killed goes a moment after it.
$bridge delete "v$1" 2>/dev/null || :
ip -batch - <<END
link set lo up
link add eth0 type veth peer name v$1 netns /proc/$3/ns/net
address add $2/16 dev eth0
link set eth0 up
END
$bridge set "v$1" master br0 up
mount -n -t proc proc /proc
: >"/run/lab/run/$1.ready"
# Adopts what its daemons leave behind; nothing but a kill from outside ends it, and the machine with it.
while :; do
	sleep 86400 &
	wait $!
done
