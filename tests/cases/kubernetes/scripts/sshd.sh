# Read by enter.sh on the nodes of an MPI program: a daemon of this user, on a high port, for the run's own key.
keys=$work/ssh
mkdir -p "$keys" && chmod 700 "$keys" || exit 1
cp /podwright/ssh/id_rsa "$keys/key" && cp /podwright/ssh/authorized_keys "$keys/authorized_keys" && chmod 600 "$keys"/* || exit 1
sshd=$(command -v sshd || echo /usr/sbin/sshd)
[ -x "$sshd" ] || over "the image has no sshd, which MPI on Kubernetes needs"
[ -e "$keys/host" ] || ssh-keygen -q -t ed25519 -N '' -f "$keys/host" || exit 1
"$sshd" -D -e -f /dev/null -p 2222 -h "$keys/host" -o AuthorizedKeysFile="$keys/authorized_keys" \
    -o StrictModes=no -o UsePAM=no -o PidFile=none -o PasswordAuthentication=no &

# mpirun gives all ranks the environment of node 0: what it calls its own folder is that of each node here.
if [ "$JOB_COMPLETION_INDEX" != 0 ]; then
    mkdir -p "$work/scratch/n$JOB_COMPLETION_INDEX" && ln -sfn "n$JOB_COMPLETION_INDEX" "$work/scratch/n0" || exit 1
fi

# The launcher asks how it went; a node that is gone could not report.
leave() {
    rm -f "$work/ended"
    case $1 in
        0 | 77 | 64 | 69) echo "$1" >"$work/ended" ;;
    esac
    [ "$JOB_COMPLETION_INDEX" != 0 ] || [ ! -e "$work/ended" ] || sleep 5
}
