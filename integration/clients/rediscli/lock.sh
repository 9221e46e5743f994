#!/usr/bin/env bash
# redis-cli against a running redlock-proxy: lock.sh HOST PORT
#
# Prints "ok NAME" for each check, and stops with exit code 1 at the first that fails.
# Replies are compared as a terminal shows them: (integer) 1, (nil), (error) ….
set -euo pipefail

readonly host=$1 port=$2
readonly prefix="rediscli:$$-$RANDOM:"

ask() { redis-cli -h "$host" -p "$port" --no-raw "$@"; }

# expect and expect_between fail the check named in $check.
fail() {
    echo "FAILED $check: expected $1, got $2" >&2
    exit 1
}

expect() {
    if [[ $1 != "$2" ]]; then fail "$1" "$2"; fi
}

# expect_between LOW HIGH REPLY: an integer reply above LOW, and HIGH at most.
expect_between() {
    local number=${3#(integer) }
    if [[ ! $3 =~ ^\(integer\)\ [0-9]+$ ]] || ((number <= $1 || number > $2)); then
        fail "(integer) in ($1..$2]" "$3"
    fi
}

# expect_waited LOW HIGH START: milliseconds since START.
expect_waited() {
    local waited=$(($(now) - $3))
    expect_between "$1" "$2" "(integer) $waited"
}

# now prints milliseconds; the old bash of macOS has no EPOCHREALTIME.
now() {
    if [[ -n ${EPOCHREALTIME:-} ]]; then
        echo $((${EPOCHREALTIME//[.,]/} / 1000))
    else
        perl -MTime::HiRes=time -e 'printf "%d", 1000 * time'
    fi
}

ping() { expect PONG "$(ask PING)"; }

lock() { expect_between 9000 10000 "$(ask LOCK "${prefix}life" t PX 10000)"; }
held() { expect '(nil)' "$(ask LOCK "${prefix}life" t2 PX 10000)"; }
unlock_wrong_token() { expect '(integer) 0' "$(ask UNLOCK "${prefix}life" t2)"; }
extend() { expect_between 9000 10000 "$(ask EXTEND "${prefix}life" t PX 10000)"; }
unlock() { expect '(integer) 1' "$(ask UNLOCK "${prefix}life" t)"; }
extend_after_unlock() { expect '(nil)' "$(ask EXTEND "${prefix}life" t PX 10000)"; }

# RESP2 brings a row of four: 1) "validity" 2) (integer) 4938 3) "token" 4) "…".
made_token() {
    local shape='^1\) "validity" 2\) (\(integer\) [0-9]+) 3\) "token" 4\) "([0-9a-f]{32})"$' reply
    reply=$(ask LOCK "${prefix}made" '*' EX 5 | paste -sd ' ' -)
    if [[ ! $reply =~ $shape ]]; then fail "$shape" "$reply"; fi
    local validity=${BASH_REMATCH[1]} token=${BASH_REMATCH[2]}
    expect_between 4000 5000 "$validity"
    expect '(integer) 1' "$(ask UNLOCK "${prefix}made" "$token")"
}

# RESP3 brings a map: 1# "validity" => (integer) 4938 2# "token" => "…".
resp3() {
    local shape='^1# "validity" => (\(integer\) [0-9]+) 2# "token" => "([0-9a-f]{32})"$' reply
    reply=$(ask -3 LOCK "${prefix}resp3" '*' EX 5 | paste -sd ' ' -)
    if [[ ! $reply =~ $shape ]]; then fail "$shape" "$reply"; fi
    local validity=${BASH_REMATCH[1]} token=${BASH_REMATCH[2]}
    expect_between 4000 5000 "$validity"
    expect '(nil)' "$(ask -3 LOCK "${prefix}resp3" t2 EX 5)"
    expect '(integer) 1' "$(ask -3 UNLOCK "${prefix}resp3" "$token")"
}

block_runs_out() {
    ask LOCK "${prefix}out" t PX 10000 >/dev/null
    local start
    start=$(now)
    expect '(nil)' "$(ask LOCK "${prefix}out" t2 PX 1000 BLOCK 200)"
    expect_waited 190 9000 "$start"
    ask UNLOCK "${prefix}out" t >/dev/null
}

block_served() {
    ask LOCK "${prefix}served" t PX 60000 >/dev/null
    { sleep 0.3 && ask UNLOCK "${prefix}served" t >/dev/null; } &
    local start release=$!
    start=$(now)
    expect_between 9000 10000 "$(ask LOCK "${prefix}served" t2 PX 10000 BLOCK 30000)"
    expect_waited 250 25000 "$start"
    wait "$release"
    expect '(integer) 1' "$(ask UNLOCK "${prefix}served" t2)"
}

error_expire() { expect "(error) ERR invalid expire time in 'lock' command" "$(ask LOCK k t PX 0)"; }
error_arity() { expect "(error) ERR wrong number of arguments for 'lock' command: LOCK key token PX milliseconds|EX seconds [SHARED|SLOTS slots] [KEEPALIVE [MAXHOLD milliseconds]] [BLOCK milliseconds] [FENCE] [AT]" "$(ask LOCK k t)"; }
error_unknown() {
    expect "(error) ERR unknown command 'FOO', with args beginning with: 'a' 'b' " "$(ask FOO a b)"
}

# The same key in two databases is two locks.
select_database() {
    local db
    for db in 0 1; do expect_between 9000 10000 "$(ask -n $db LOCK "${prefix}db" "t$db" PX 10000)"; done
    for db in 0 1; do expect '(integer) 1' "$(ask -n $db UNLOCK "${prefix}db" "t$db")"; done
}

# --pipe sends everything at once, here as inline commands, and counts the replies.
pipeline() {
    local counted
    counted=$(printf '%s\r\n' "LOCK ${prefix}pipe t PX 10000" 'LOCK k t' "UNLOCK ${prefix}pipe t" PING |
        redis-cli -h "$host" -p "$port" --pipe 2>&1 | tail -n 1) || true
    expect 'errors: 1, replies: 4' "$counted"
    expect '(integer) 0' "$(ask UNLOCK "${prefix}pipe" t)"
}

name() {
    expect 'OK "worker-7"' "$(printf 'CLIENT SETNAME worker-7\nCLIENT GETNAME\n' | ask | paste -sd ' ' -)"
}

# What redis-cli asks for its completion and hints must not disturb what comes after it.
command_docs() {
    expect PONG "$(printf 'COMMAND DOCS\nPING\n' | ask | tail -n 1)"
}

for check in ping lock held unlock-wrong-token extend unlock extend-after-unlock made-token resp3 \
    block-runs-out block-served error-expire error-arity error-unknown select pipeline name command-docs; do
    case $check in
    select) select_database ;; # "select" is a word of bash
    *) "${check//-/_}" ;;
    esac
    echo "ok $check"
done
