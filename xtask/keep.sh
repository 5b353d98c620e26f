# Sourced by the scripts that measure on machines without a compiler: they keep a JSON file a measurement in $out, until
# $limit seconds have passed.
begin=$(date +%s)
rm -f "$out/failed"
: >"$out/summary.txt"

say() { echo "$*" | tee -a "$out/summary.txt"; }
# True while there is time for another part.
has_time() { [ $(($(date +%s) - begin)) -lt "$limit" ]; }
left() { echo $((limit + 30 - $(date +%s) + begin)); }
failed() { say "FAILED: $*"; : >"$out/failed"; }

# keep NAME COMMAND...: the command's JSON, and the seconds it took.
keep() {
    to=$out/$1.json
    shift
    if ! has_time; then say "${to##*/}: no time left"; return; fi
    start=$(date +%s)
    if timeout "$(left)" "$@" >"$to" 2>"$to.err"; then
        say "${to##*/}: $(($(date +%s) - start)) s"
    else
        failed "$*: $(tail -n 3 "$to.err")"
    fi
}
