#!/usr/bin/env bash
# redis-cli as a user of the proxy's own: users.sh HOST PORT CA USER PASSWORD COMMAND…
#
# Sends each command, whose words stand together in one argument, and prints the reply or the error. CA is a file, or
# empty for no TLS.
set -uo pipefail

readonly host=$1 port=$2 ca=$3 user=$4 password=$5
shift 5
tls=()
if [[ -n $ca ]]; then tls=(--tls --cacert "$ca"); fi
for line in "$@"; do
    read -ra words <<<"$line"
    reply=$(REDISCLI_AUTH=$password redis-cli -h "$host" -p "$port" "${tls[@]}" --user "$user" "${words[@]}" 2>&1)
    echo "$reply" | tr -s '\n' ' '
    echo
done
