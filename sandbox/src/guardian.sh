# Stops the servers of one cluster or broker, and removes its folder, once nobody else can.
#
# Standard input is a pipe whose only writer is the process that owns the folder. However that
# process ends, the kernel closes its end, and the loop below ends with it.
# Standard output is the folder's lock: nobody else can take it before this script has ended.
#
#   SANDBOX_ROOT    the folder
#   SANDBOX_REMOVE  not empty: remove the folder
#
# Both come by environment, not as arguments, so that this script never finds itself below.

trap '' HUP INT QUIT TERM
orderly=
while read -r word; do
    case $word in
        bye) orderly=yes ;;
        remove) SANDBOX_REMOVE=yes ;;
    esac
done

# Every PostgreSQL server, and every tool that prepares one, was started with -D<folder>/<node> as one
# word. A broker and its many helpers carry SANDBOX_BROKER=<folder>/ in their environment instead. To
# go by that instead of by a recorded process id has three merits: it finds a server that was started
# in the very moment its owner died, a reused id is never mistaken, and a zombie does not count.
servers() {
    if [ -d "$SANDBOX_ROOT/broker" ]; then
        mark="SANDBOX_BROKER=$SANDBOX_ROOT/" where=environ
    else
        mark="-D$SANDBOX_ROOT/" where=cmdline
    fi
    printf '%s\n' "$mark" | grep -lFf - /proc/[0-9]*/$where 2>/dev/null | cut -d / -f 3
}

children_of() {
    read -r children 2>/dev/null <"/proc/$1/task/$1/children" || children=
    printf '%s\n' "$children"
}

# Sends a signal to all servers, until all are gone or the time (in units of 20 ms) is up.
stop_with() {
    signal=$1 patience=$2
    while pids=$(servers) && [ -n "$pids" ]; do
        [ "$patience" -gt 0 ] || return 1
        patience=$((patience - 1))
        for pid in $pids; do
            read -r program <"/proc/$pid/comm" || continue
            if [ "$signal" = KILL ] || [ "$program" != postgres ]; then
                # A parent that is stopped starts no new children meanwhile. Tools are not asked: they
                # have nothing to lose, and would dump core.
                kill -s STOP "$pid"
                kill -s KILL $(children_of "$pid") "$pid"
            else
                # A frozen server cannot obey: thaw it first.
                kill -s CONT "$pid" $(children_of "$pid")
                kill -s "$signal" "$pid"
            fi
        done 2>/dev/null
        sleep 0.02
    done
}

# A server that was killed leaves a shared memory segment that outlives its folder. The one that its
# pid file names is removed, if it is still the one this server made and nobody is attached to it.
remove_shared_memory() {
    for file in "$SANDBOX_ROOT"/*/postmaster.pid; do
        [ -f "$file" ] || continue
        { read -r pid && read -r _ && read -r _ && read -r _ && read -r _ && read -r _ && read -r key id; } <"$file"
        awk -v key="$key" -v id="$id" -v pid="$pid" \
            '$1 == key && $2 == id && $5 == pid && $7 == 0 { found = 1 } END { exit !found }' \
            /proc/sysvipc/shm && ipcrm -m "$id"
    done 2>/dev/null
}

# A process that was being started when its owner was killed may not show its command line yet.
[ -n "$orderly" ] || sleep 0.1

if [ -z "$SANDBOX_REMOVE" ]; then
    # The data is kept: a fast shutdown spares the next start a crash recovery.
    stop_with INT 500 || stop_with QUIT 300 || stop_with KILL 100
    exit
fi

stop_with QUIT 300 || stop_with KILL 100
remove_shared_memory
attempts=100
until rm -rf "$SANDBOX_ROOT" 2>/dev/null; do
    # A tool that died a moment ago may have added a file.
    [ "$attempts" -gt 0 ] || exit 1
    attempts=$((attempts - 1))
    sleep 0.02
done
