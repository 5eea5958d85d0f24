// workers: goroutines that take turns at a lock, and never meet.
//
//	workers URL
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"sqlock.example/sqlock"
)

const workers, rounds = 16, 20

func run(url string) error {
	if err := sqlock.CreateSchema(url); err != nil {
		return err
	}
	registry, err := sqlock.Open(url)
	if err != nil {
		return err
	}
	defer registry.Close()

	var inside, met int32
	var turns int // by whoever holds the lock, and by nothing else
	var last int64
	var group sync.WaitGroup
	failed := make(chan error, workers)
	for i := 0; i < workers; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for j := 0; j < rounds; j++ {
				lease, err := registry.Acquire(context.Background(), "workers")
				if err != nil {
					failed <- err
					return
				}
				if atomic.AddInt32(&inside, 1) != 1 || lease.Token() <= last {
					atomic.AddInt32(&met, 1)
				}
				last = lease.Token()
				turns++
				atomic.AddInt32(&inside, -1)
				if err := lease.Release(); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
	}
	if met != 0 || turns != workers*rounds {
		return fmt.Errorf("%d times two met, %d turns", met, turns)
	}
	fmt.Printf("%d goroutines took %d turns, one at a time\n", workers, turns)

	lease, err := registry.Acquire(context.Background(), "workers")
	if err != nil {
		return err
	}
	var why *sqlock.Error
	if _, err = registry.TryAcquire("workers"); !errors.As(err, &why) || why.Code != sqlock.Busy {
		return fmt.Errorf("a lock that is held was given away: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err = registry.Acquire(ctx, "workers"); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("a wait outlived its context: %v", err)
	}
	fmt.Println("a wait ends with its context")
	return lease.Release()
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: workers URL")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "workers:", err)
		os.Exit(1)
	}
}
