#!/bin/sh
# Makes the image that hosts boot from and puts it in place whole: kernel, initrd, root, and a script that names them.
# usage: build.sh TARGET SUITE RECIPE PACKAGES, the packages with commas between; RECIPE is kept beside the image.
# Packages come from where apt on this host gets them.
set -eu
here=$(dirname "$(readlink -f "$0")")
target=$1 suite=$2 recipe=$3 packages=$4
work=$(mktemp -d "$target/.image-XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 711 "$work"
root=$work/root

sources=
for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    [ -s "$file" ] && sources="$sources $file"
done
(umask 077 && apt-config dump | grep -E '^Acquire::(https?::|Retries |Check-Valid-Until )' >"$work/apt.conf") || :

# What the initrd and the system have of ours is there before the kernel comes, whose installation makes the initrd.
# shellcheck disable=SC2086 # names of files of apt have no blanks
mmdebstrap --quiet --mode=root --variant=minbase --include="$packages" --aptopt="$work/apt.conf" \
    --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/info/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --essential-hook="cp -r '$here'/root/. \"\$1\"" \
    --customize-hook='chroot "$1" systemctl --quiet enable ssh systemd-networkd podwright-install' \
    "$suite" "$root" $sources

# Everybody in the network can fetch the image: it has no secret, also none that a package made when it came.
rm -f "$root"/etc/ssh/ssh_host_* "$root"/etc/munge/munge.key
# The machine's id and its name are each host's own; packages come from where `up` says.
rm -f "$root"/etc/apt/apt.conf.d/99mmdebstrap "$root"/etc/resolv.conf "$root"/etc/hostname
: >"$root/etc/machine-id"

mkdir "$work/image"
cp "$root"/boot/vmlinuz-* "$work/image/vmlinuz"
cp "$root"/boot/initrd.img-* "$work/image/initrd"
mksquashfs "$root" "$work/image/root.squashfs" -noappend -quiet -no-progress -comp zstd -Xcompression-level 3
digest=$(sha256sum "$work/image/root.squashfs")
digest=${digest%% *}
name=image-$(printf %.16s "$digest")
chmod 644 "$work"/image/*

rm -rf "${target:?}/$name"
mv "$work/image" "$target/$name"
printf '#!ipxe\nset image %s\nset digest %s\n' "$name" "$digest" >"$work/image.ipxe"
mv "$work/image.ipxe" "$target/image.ipxe"
echo "$recipe" >"$work/recipe"
mv "$work/recipe" "$target/recipe"
for old in "$target"/image-*; do
    [ "$old" = "$target/$name" ] || rm -rf "$old"
done
