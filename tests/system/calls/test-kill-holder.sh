#!/bin/bash
# kill -9 of a holder releases its lock at once; kill -9 of a waiter takes its claim out of the queue, and the rest go on.
# shellcheck source=../../functions.sh
. "$(dirname "$0")/../../functions.sh"

start_zookeeper
start_dlockfs A --session-timeout 60s
start_dlockfs B --session-timeout 60s

for kind in flock open; do
    for step in holder middle last; do
        if [ $kind = flock ]; then
            steps=(open ex hold)
            sign="ex ok"
        else
            steps=(excl hold)
            sign="excl ok"
        fi
        host=A
        [ $step = last ] && host=B
        call "$step" "$dir/$host/$kind" "${steps[@]}"
        case $step in
            holder) expect holder "$sign" ;;
            middle) wait_claims "$kind" 2 ;;
            last) wait_claims "$kind" 3 ;;
        esac
    done
    # A waiter that is killed is gone immediately, it does not wait for an answer.
    kill -KILL "$(pid middle)"
    wait_until "$deadline" gone middle
    wait_claims "$kind" 2
    if said last "$sign"; then
        violation "$kind: the end of a waiter let the next one in"
    fi
    kill -KILL "$(pid holder)"
    wait_until "$deadline" said last "$sign"
    wait_claims "$kind" 1
    # The same with the waiter on the other host.
    call waiter-b "$dir/B/$kind" "${steps[@]}"
    wait_claims "$kind" 2
    call waiter-a "$dir/A/$kind" "${steps[@]}"
    wait_claims "$kind" 3
    kill -KILL "$(pid waiter-b)"
    wait_until "$deadline" gone waiter-b
    wait_claims "$kind" 2
    kill -KILL "$(pid last)"
    wait_until "$deadline" said waiter-a "$sign"
    release waiter-a
    wait_claims "$kind" 0
done
