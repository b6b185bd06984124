# summary.sh - read by scripts of guests (. ./summary.sh): what depends on the form of gpuscope's summary in JSON.

# The one line of FILE that is the summary.
summary_line() { grep '^{.*"type":"summary"' "$1"; }
# calls FILE NAME: of the function with that name
calls() { summary_line "$1" | tr '{' '\n' | grep "\"name\": *\"$2\"" | sed -n 's/.*"calls": *\([0-9]*\).*/\1/p' | head -1; }
# How calls were seen.
way() { summary_line "$1" | sed -n 's/.*"attach": *"\([^"]*\)".*/\1/p'; }
