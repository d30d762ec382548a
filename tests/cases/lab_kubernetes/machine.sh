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
umask 022
[ "$1" = n1 ] || ip route add 10.78.1.0/24 via 10.77.1.1
[ "$1" = n2 ] || ip route add 10.78.2.0/24 via 10.77.1.2
if [ "$1" != control ]; then
	node=/run/lab/nodes/$1
	aside=/run/lab/run/$1
	mkdir -p "$aside" "$node/settings"
	mount -n -t tmpfs -o mode=755 run "$aside"
	mkdir "$aside/lab" "$aside/lock"
	mount -n --bind /run/lab "$aside/lab"
	mount -n --move "$aside" /run
	for place in lib/kubelet lib/containerd lib/cni log/pods log/containers; do
		mkdir -p "/var/$place" "$node/$place"
		mount -n --bind "$node/$place" "/var/$place"
	done
	for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
		name=${setting%=*}
		copy=$node/settings/${name##*/}
		echo "${setting#*=}" >"$copy"
		mount -n --bind "$copy" "/proc/sys/$name"
	done
	ip route add default via 10.77.0.2
	echo 1 >/proc/sys/net/ipv4/ip_forward
	mount -n --make-rshared /
fi
: >"/run/lab/run/$1.ready"
# Adopts what its daemons leave behind; nothing but a kill from outside ends it, and the machine with it.
while :; do
	sleep 86400 &
	wait $!
done
