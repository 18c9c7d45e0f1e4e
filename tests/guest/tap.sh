# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Test results as TAP lines, for the scripts of this directory. They run inside a machine of
# tests/cluster.

count=0 failures=0
guest=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../build/guest" && pwd)
module=$(. /run/settings && echo "$module")

# ok WHAT COMMAND...: expect COMMAND to succeed
ok() {
	local what=$1
	shift
	count=$((count + 1))
	if "$@" >/tmp/said 2>&1; then
		echo "ok $count - $what"
	else
		failures=$((failures + 1))
		echo "not ok $count - $what"
		sed 's/^/# /' /tmp/said
	fi
}

# refused WHAT STATUS TEXT COMMAND...: expect COMMAND to exit with STATUS, to print one line
# that contains TEXT to stderr, and to print nothing to stdout. After wrong usage, status
# 64, a hint at --help follows that line.
refused() {
	local what=$1 expected=$2 text=$3 status hint
	shift 3
	count=$((count + 1))
	"$@" >/tmp/said 2>/tmp/complained </dev/null
	status=$?
	if [ $expected = 64 ]; then
		hint=$(sed 1d /tmp/complained)
		[[ $hint == "Try "*--help* ]] && sed -i 2,3d /tmp/complained
	fi
	if [ $status = "$expected" ] && [ ! -s /tmp/said ] &&
	   [ "$(wc -l </tmp/complained)" = 1 ] && grep -qF -- "$text" /tmp/complained; then
		echo "ok $count - $what: $(cat /tmp/complained)"
	else
		failures=$((failures + 1))
		echo "not ok $count - $what"
		echo "# status $status for $expected, should say: $text"
		sed 's/^/# /' /tmp/complained /tmp/said
	fi
}

# hold WHAT NAME: run hold.c in the background until release() is called
hold() {
	coproc holder { exec "$guest/hold" "$1" "$2"; }
	read -r -t 30 _ <&"${holder[0]}"
}

release() {
	local pid=$holder_PID
	eval "exec ${holder[1]}>&-"
	wait "$pid" 2>/dev/null
}

# soon COMMAND...: try the command once a second until it succeeds, for at most a minute
soon() {
	for _ in $(seq 60); do
		"$@" && return
		sleep 1
	done
	return 1
}

# meet: wait until all nodes have called it as often. The host leads the meeting, so it needs no kdsm.
meet() {
	echo "$KDSM_NODE meet" >&3
	read -r _ <&3
}

as_nobody() {
	setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"
}

end() {
	echo "1..$count"
	[ $failures = 0 ]
	exit
}
