#!/bin/sh
set -eu
cd /
mount -n --make-rprivate /
echo "$1" >/proc/sys/kernel/hostname
mkdir -p '/home/ann/my labs/one/run/veil'
mount -n -t tmpfs -o mode=755 veil '/home/ann/my labs/one/run/veil'
mkdir -p '/home/ann/my labs/one/run/veil/my labs/one'
mount -n --bind '/home/ann/my labs/one' '/home/ann/my labs/one/run/veil/my labs/one'
mkdir -p '/home/ann/my labs/one/run/veil/env' && : >'/home/ann/my labs/one/run/veil/env/note.txt'
mount -n --bind /home/ann/env/note.txt '/home/ann/my labs/one/run/veil/env/note.txt'
mount -n --move '/home/ann/my labs/one/run/veil' /home/ann
mkdir -p '/home/ann/my labs/one/run/veil'
mount -n -t tmpfs -o mode=755 veil '/home/ann/my labs/one/run/veil'
mount -n --move '/home/ann/my labs/one/run/veil' /run
mkdir -p '/home/ann/my labs/one/run/etc'
mount -n -t tmpfs -o mode=755 etc '/home/ann/my labs/one/run/etc'
cp -a /etc/. '/home/ann/my labs/one/run/etc'
mount -n --move '/home/ann/my labs/one/run/etc' /etc
mkdir -p /run/lab /run/sshd /run/munge
mount -n --bind '/home/ann/my labs/one' /run/lab
mount -n --bind /run/lab/etc/hosts /etc/hosts
# Slurm opens the PMIx library by the plain name that only a development package gives it.
for real in /usr/lib/*/pmix2/lib; do
	[ -e "$real/libpmix.so.2" ] && [ ! -e "$real/libpmix.so" ] || continue
	mkdir -p /run/pmix
	mount -n --bind "$real" /run/pmix
	mount -n -t tmpfs -o mode=755 pmix "$real"
	ln -s /run/pmix/* "$real"
	ln -s /run/pmix/libpmix.so.2 "$real/libpmix.so"
done
ip link set lo up
ip link add br0 type bridge
ip address add 10.77.0.1/16 dev br0
ip link set br0 up
: >"/run/lab/run/$1.ready"
# Adopts what its daemons leave behind; nothing but a kill from outside ends it, and the machine with it.
while :; do
	sleep 86400 &
	wait $!
done
