# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The commands of a page of Documentation/, for scripts that run them and source this file.

# commands PAGE: print three strings for each command, each ended by a zero byte: the prompt, the
# command and its output. A command follows a prompt in a line that begins with four blanks: "$", or
# the name of a machine with "$" or "#". A command with "<<END" goes on to the line END. The output
# is the lines up to the next command or to text, without blank lines at its end.
commands() {
	awk '
	function flush() {
		if (prompt != "")
			printf "%s%c%s%c%s%c", prompt, 0, command, 0, output, 0
		prompt = output = blank = ""
	}
	end != "" {
		command = command "\n" substr($0, 5)
		if (substr($0, 5) == end)
			end = ""
		next
	}
	match($0, /^    ([a-z]*[0-9]*[$]|[a-z]+[0-9]*#) /) {
		flush()
		prompt = substr($0, 5, RLENGTH - 5)
		command = substr($0, RLENGTH + 1)
		if (match(command, /<<[A-Z]+/))
			end = substr(command, RSTART + 2, RLENGTH - 2)
		next
	}
	/^    / { output = output blank substr($0, 5) "\n"; blank = ""; next }
	/^$/ { blank = "\n"; next }
	{ flush() }
	END { flush() }' "$1"
}

# next_command: read a command from the output of commands() into prompt, command and output
next_command() {
	IFS= read -r -d '' prompt && IFS= read -r -d '' command && IFS= read -r -d '' output
}
