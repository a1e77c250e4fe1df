#!/usr/bin/env bash
# The first process of one machine of a test cluster, begun in new namespaces: makes the machine's own
# files, then reaps whatever ends on it. When it dies, the kernel ends everything on the machine.
#   machine.sh STATE NAME [FOLDER ...]     STATE becomes /run/cluster
# A node's /tmp is its own disk: of the host's /tmp it shows only the FOLDERs. head keeps the host's.
set -euo pipefail
state=$1 name=$2
shift 2

read -ra stat </proc/self/stat  # the host's /proc still: our number and start time as the host sees them
echo "${stat[0]} ${stat[21]}" >"$state/$name/process"

mount -t proc proc /proc
hostname "$name"
mount --bind "$state/hosts" /etc/hosts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm

mount -t tmpfs -o mode=755 tmpfs "$state/$name/run"
mkdir "$state/$name/run/cluster"
mount --bind "$state" "$state/$name/run/cluster"
mount --rbind "$state/$name/run" /run

if [ "$name" != head ]; then
  tmp=/run/cluster/$name/tmp
  for folder in "$@"; do
    [[ $folder == /tmp/* ]] || continue
    mkdir -p "$tmp/${folder#/tmp/}"
    mount --bind "$folder" "$tmp/${folder#/tmp/}"
  done
  mount --rbind "$tmp" /tmp
fi

touch "/run/cluster/$name/ready"
while :; do
  sleep infinity &
  wait
done
