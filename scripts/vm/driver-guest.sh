#!/bin/sh
# driver-guest.sh - runs in a guest of boot.sh, as root, beside gpuscope, a stand-in for NVIDIA's driver (tests/vm/nvidia)
# and a program that asks it (tests/vm/driver): what gpuscope says must be what the program does. busybox is all there is.
cd "$(dirname "$0")" || exit 1
passed=0 failed=0
# equal TITLE EXPECTED GOT
equal() {
  if [ "$2" = "$3" ]; then passed=$((passed + 1)); echo "ok: $1"; else
    failed=$((failed + 1)); printf 'FAILED: %s\n--- expected\n%s\n--- got\n%s\n' "$1" "$2" "$3"
  fi
}

# names FILE: "COUNT NAME" of each record of the kernel layer
names() {
  grep '"type":"kernel"' "$1" | sed 's/.*"name":"\([^"]*\)".*/\1/' | sort | uniq -c | sed 's/^ *//'
}

# of FILE NAME FIELD: the field of each record of that name, as text
of() { grep "\"name\":\"$2" "$1" | grep '"type":"kernel"' | sed -n "s/.*\"$3\":\"\{0,1\}\([^\",}]*\).*/\1/p" | tr '\n' ' '; }

expected='1 RM_ALLOC NV01_ROOT_CLIENT
1 RM_CONTROL
1 RM_CONTROL NVA06C_CTRL_CMD_GPFIFO_SCHEDULE
1 UVM_INITIALIZE
1 mmap
1 nvidia ioctl 0xa5
1 nvidia ioctl 0xfe
1 poll
2 close
3 open
4 RM_ALLOC NV01_MEMORY_LOCAL_USER
4 RM_CONTROL NV503C_CTRL_CMD_REGISTER_VIDMEM
4 RM_FREE'

# without the driver: its devices cannot be opened, which is told
./gpuscope run --layer kernel --summary none -o /tmp/absent.jsonl -- ./asker 2>/tmp/absent.err
equal 'without a driver its device is missed' 'ENOENT ENOENT ' "$(of /tmp/absent.jsonl open error)"

insmod ./nvidia.ko || exit 1
./gpuscope run --layer all --hooks asker.toml --summary json -o /tmp/t.jsonl -- ./asker >/tmp/out 2>/tmp/err
equal 'the program ends well' 0 $?
equal 'each call by name' "$(echo "$expected" | sort)" "$(names /tmp/t.jsonl | sort)"
grep '^{.*"type":"summary"' /tmp/err >/tmp/summary
counted=$(sed 's/.*"functions": *\[//; s/\],.*//' /tmp/summary | tr '{' '\n' | grep '"layer":"kernel"' |
  sed 's/.*"calls":\([0-9]*\).*"name":"\([^"]*\)".*/\1 \2/')
equal 'the totals say the same' "$(echo "$expected" | sort)" "$(echo "$counted" | sort)"
equal 'memory as it was taken' '67108864 5242880 3145728 7340032 ' "$(of /tmp/t.jsonl 'RM_ALLOC NV01_MEMORY' size)"
equal 'an argument whose page came late, and one that never was' '0 -14 0 0 ' \
  "$(of /tmp/t.jsonl RM_FREE ret | tr ' ' '\n' | sed '/^$/d' | awk 'NR == 1 { a = $1; next } NR == 2 { print $1; print a; next } { print }' | tr '\n' ' ')"
equal 'refusals by name' 'EINVAL ' "$(of /tmp/t.jsonl 'nvidia ioctl 0xfe' error)"
equal 'a wrong size is not decoded, and says so' 1 "$(grep -c 'takes 32 bytes in branch [0-9]*, this call says 24' /tmp/t.jsonl)"

# what is asked within a hooked function is its child
ids=$(grep '"type":"userspace".*"name":"take_memory"' /tmp/t.jsonl | sed 's/{"event_id":\([0-9]*\).*/\1/')
children=0
for id in $ids; do children=$((children + $(grep -c "\"type\":\"kernel\".*\"parent_id\":$id," /tmp/t.jsonl))); done
equal 'each function has its calls below it' 8 "$children"
equal 'and their number' 8 "$(sed 's/.*"driver_calls":\([0-9]*\)[^{]*"name":"take_memory".*/\1/' /tmp/summary)"
held=$(sed 's/.*"driver_objects"://' /tmp/summary)
equal 'what was kept is held at the end' '"vidmem":{"bytes":5242880,"count":1},"vidmem_peak_bytes":72351744' \
  "$(echo "$held" | grep -o '"vidmem":{"bytes":5242880,"count":1},"vidmem_peak_bytes":[0-9]*')"
equal 'nothing is lost or unseen' 1 "$(grep -c '"lost_events":0' /tmp/summary)"

# every process: ioctls alone, and of no other device
./gpuscope trace --all --layer kernel --summary none -o /tmp/all.jsonl --duration 6s 2>/tmp/all.err &
until grep -q tracing /tmp/all.err; do sleep 0.2; done
./asker >/dev/null; stty -F /dev/console >/dev/null 2>&1; wait $!
equal 'of every process' "$(echo "$expected" | grep -v -E ' (open|close|mmap|poll)$' | sort)" "$(names /tmp/all.jsonl | sort)"

# the module goes and comes again, with other numbers of its devices
rmmod nvidia && insmod ./nvidia.ko && ./gpuscope run --layer kernel --summary none -o /tmp/again.jsonl -- ./asker >/dev/null
equal 'after the driver was loaded again' "$(echo "$expected" | sort)" "$(names /tmp/again.jsonl | sort)"

[ $failed -eq 0 ] || { cut -c1-600 /tmp/err | tail -5; tail -3 /tmp/all.err; grep '"name":"RM_FREE"' /tmp/t.jsonl; }
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
