#!/bin/sh
# Sends the record of a node through this container's output. It ends when the record is closed; where the pilot was
# killed that never comes, and it is reported after ten seconds. Kubernetes starts again what ends too early.
[ -s /podwright/work/began ] || date +%s >/podwright/work/began
export PODWRIGHT_RESTART="${PODWRIGHT_RESTART#0}$(cat /podwright/work/began)"
stopped=no
trap 'stopped=yes' TERM INT
/bin/sh /podwright/job/pilot.sh ship /podwright/job/order.json &
ship=$!
while :; do
    wait "$ship"
    kill -0 "$ship" 2>/dev/null || break
    { sleep 10; kill -TERM "$ship"; } 2>/dev/null &
done
while [ "$stopped" = no ]; do  # in short sleeps: a signal that comes just before a wait does not end it
    sleep 1 &
    wait $!
done
exit 0
