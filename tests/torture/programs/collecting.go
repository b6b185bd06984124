// Goroutines that call CUDA through cgo while their stacks grow and move, and the collector runs without a pause.
package main

// #cgo LDFLAGS: -lcuda
// #include "cuda.h"
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
)

const (
	routines = 8
	rounds   = 125
)

var garbage atomic.Value

// A stack that is deeper in each round, so that it is copied to another place.
//
//go:noinline
func grow(depth int) int {
	var room [256]byte
	room[depth%len(room)] = 1
	if depth == 0 {
		return int(room[0])
	}
	return grow(depth-1) + int(room[depth%len(room)])
}

func pair() bool {
	var address C.ulonglong
	return C.cuMemAlloc_v2(&address, 64) == 0 && C.cuMemFree_v2(address) == 0
}

func work(wrong *int64) {
	for round := 0; round < rounds; round++ {
		if grow(round) != round+1 || !pair() {
			atomic.AddInt64(wrong, 1)
		}
		garbage.Store(make([]byte, 4096))
		runtime.Gosched()
	}
}

func collect(end *int32) {
	for atomic.LoadInt32(end) == 0 {
		runtime.GC()
	}
}

func main() {
	var wrong int64
	var end int32
	var all sync.WaitGroup
	go collect(&end)
	for i := 0; i < routines; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			work(&wrong)
		}()
	}
	all.Wait()
	atomic.StoreInt32(&end, 1)
	fmt.Printf("pairs %d, wrong %d\n", routines*rounds, wrong)
	if wrong != 0 {
		os.Exit(1)
	}
}
