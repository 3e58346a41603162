# Adds up what test runners reported, as one line: "N passed, N failed, N skipped".
#
# Reads the lines of Swift Testing ("Test run with 12 tests in 3 suites passed", "Test name() failed
# after", "Test name() skipped") and the plain form that this file itself writes. `extra` failures
# are added.

function count(word,   found) {
  if (match($0, "[0-9]+ " word)) {
    found = substr($0, RSTART, RLENGTH)
    sub(/ .*/, "", found)
    return found + 0
  }
  return 0
}

# The symbol in front depends on the terminal; what follows does not.
{ sub(/^[^A-Za-z0-9]+/, "") }

/^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$/ {
  passed += count("passed")
  failed += count("failed")
  skipped += count("skipped")
  next
}
/^Test run with [0-9]+ tests? / { run += count("tests?"); next }
/^Test run started/ || /^Test case / { next }
/^Test .* failed after [0-9.]+ seconds/ { testsFailed++ }
/^Test .* (skipped(\.|:|$)|was cancelled after )/ { testsSkipped++ }

END {
  passed += run - testsFailed - testsSkipped
  failed += testsFailed + extra
  skipped += testsSkipped
  printf "%d passed, %d failed, %d skipped\n", passed < 0 ? 0 : passed, failed, skipped
}
