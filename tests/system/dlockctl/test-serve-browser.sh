#!/bin/bash
# The page of dlockctl serve in a browser: names and commands of others stay texts, all is reached by the keyboard and fits a narrow screen,
# and what is new appears by itself. With SCREENSHOTS=yes the pictures in etc/doc are made anew.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"
requires test -x "$build/src/web/dlockfs-web"
requires command -v chromium
requires command -v chromedriver

start_zookeeper
start_dlockfs A
start_dlockfs B

names=('cron/nightly' 'deploy/shop' '<img src=x onerror=document.title=1>' '"><script>document.title=2<' $'bidi \u202egnp.exe' 'a&lt;b1>?#%41')
mkdir "$dir/A/cron" "$dir/B/cron" "$dir/A/deploy" "$dir/B/deploy"
hold backup "$dir/A/cron/nightly"
expect backup held
for number in 2 3 4 5; do
    hold "holder$number" "$dir/B/${names[number]}"
    expect "holder$number" held
done
# Two wait for the first lock. One of them has the second one, which a program waits for that has chosen its name.
call chain "$dir/B/deploy/shop" open ex file="$dir/B/cron/nightly" open ex hold
expect chain "ex ok"
hold waiter "$dir/A/cron/nightly"
cp "$(command -v flock)" "$dir/<i>x"
start hostile "$dir/<i>x" "$dir/A/deploy/shop" sleep infinity
hold shared -s "$dir/A/deploy/shop"
wait_claims cron/nightly 3
wait_claims deploy/shop 3
start named "$dir/<i>x" "$dir/A/held by <i>x" sh -c 'echo held; exec sleep infinity'
expect named held

# As they are shown: the sixth character of one would turn the direction of those behind it.
"$python" - "$dir/names.json" "${names[@]}" 'held by <i>x' <<'END'
import json, sys
with open(sys.argv[1], "w") as file:
    json.dump([name.replace("\u202e", r"\xE2\x80\xAE") for name in sys.argv[2:]], file)
END

start web "$build/src/web/dlockfs-web" --mount "$dir/A" --listen 127.0.0.1:0
has_address() {
    [[ $(<"$dir/web.out") == http://127.0.0.1:*/ ]]
}
wait_until "$deadline" has_address
export HOME=$dir # the browser writes there
start browser "$python" "$tests/system/dlockctl/browser.py" "$(<"$dir/web.out")" "$dir"
expect browser ready
hold late "$dir/B/late"
expect browser "done"
finish browser

for picture in page page-narrow; do
    [ "${SCREENSHOTS:-}" != yes ] || pngquant --force --output "$source_dir/etc/doc/$picture.png" 64 "$dir/$picture.png"
    bytes=$(stat -c %s "$source_dir/etc/doc/$picture.png")
    [ "$bytes" -lt 81920 ] || fail "$picture.png has $bytes bytes"
done
release late named shared hostile waiter chain holder2 holder3 holder4 holder5 backup web
