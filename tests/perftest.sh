# SPDX-License-Identifier: GPL-2.0
#
# Raw verbs, measured by the programs of perftest on machines of tests/cluster; scripts source this
# file. They set $round and $calls, and print lines "time NAME ROUND VALUE".

# Print the index of the GID that holds the IPv4 address; RoCE v2 uses it on this network.
gid_index() {
	local gids=/sys/class/infiniband/rxe0/ports/1/gids index
	for index in 0 1 2 3 4 5 6 7; do
		case $(cat $gids/$index) in
		0000:0000:0000:0000:0000:ffff:*) echo "$index"; return ;;
		esac
	done
	fail "rxe0 has no GID for IPv4"
}

# raw NAME COMMAND [OPTION...]: run a program of perftest. Node 1 serves; node 0 repeats the
# program until node 1 answers. Other nodes take no part.
raw() {
	local name=$1 tries=0 output
	shift
	set -- "$@" -d rxe0 -x "${gid:=$(gid_index)}" -F -m 4096 -n "$calls"
	case $KDSM_NODE in
	0)	;;
	1)	"$@" >/dev/null 2>/tmp/raw.err || { cat /tmp/raw.err >&2; fail "$* failed"; }
		return ;;
	*)	return ;;
	esac
	until output=$("$@" 10.77.0.2 2>/tmp/raw.err); do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || { cat /tmp/raw.err >&2; fail "$* did not reach node 1"; }
		sleep 0.1
	done
	# Columns of a latency: bytes, iterations, min, max, typical (the median), average ...
	# Columns of a bandwidth: bytes, iterations, peak, average, rate; in MiB a second.
	awk -v name="$name" -v round="$round" -v column="${column-5}" '
		/^ *[0-9]+ +[0-9]+ +[0-9.]+ +[0-9.]+[ \t]+[0-9.]+/ {
			print "time", name, round, $column
		}
	' <<<"$output"
}

# poll MICROSECONDS: let kdsm poll for operations that take no longer than this on average.
poll() { echo "$1" >/sys/module/kdsm/parameters/poll_us; }
