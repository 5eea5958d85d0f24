// workers: goroutines that take turns at a lock, and never meet; that share
// permits, and read together; and a lease that is forgotten.
//
//	workers URL
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"sqlock.example/sqlock"
)

const workers, rounds, permits = 16, 20, 3

func run(url string) error {
	if err := sqlock.CreateSchema(url); err != nil {
		return err
	}
	registry, err := sqlock.Open(url)
	if err != nil {
		return err
	}
	defer registry.Close()
	for _, take := range []func(*sqlock.Registry) error{turns, usePermits, wait, read, keep} {
		if err := take(registry); err != nil {
			return err
		}
	}
	return nil
}

// each calls work in as many goroutines, and returns the first error.
func each(count int, work func(i int) error) error {
	came := make(chan error, count)
	for i := 0; i < count; i++ {
		go func(i int) { came <- work(i) }(i)
	}
	var first error
	for i := 0; i < count; i++ {
		if err := <-came; first == nil {
			first = err
		}
	}
	return first
}

func turns(registry *sqlock.Registry) error {
	var inside, met int32
	var turns int // by whoever holds the lock, and by nothing else
	var last int64
	err := each(workers, func(int) error {
		for j := 0; j < rounds; j++ {
			lease, err := registry.Acquire(context.Background(), "workers")
			if err != nil {
				return err
			}
			if atomic.AddInt32(&inside, 1) != 1 || lease.Token() <= last {
				atomic.AddInt32(&met, 1)
			}
			last = lease.Token()
			turns++
			atomic.AddInt32(&inside, -1)
			if err := lease.Release(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if met != 0 || turns != workers*rounds {
		return fmt.Errorf("%d times two met, %d turns", met, turns)
	}
	fmt.Printf("%d goroutines took %d turns, one at a time\n", workers, turns)
	return nil
}

// Goroutines take one or two of the permits at a time, and never have more.
func usePermits(registry *sqlock.Registry) error {
	var inside int32
	err := each(workers, func(i int) error {
		weight := 1 + i%2
		lease, err := registry.AcquirePermits(context.Background(), "scanner", permits, uint32(weight))
		if err != nil {
			return err
		}
		now := atomic.AddInt32(&inside, int32(weight))
		time.Sleep(time.Millisecond)
		atomic.AddInt32(&inside, -int32(weight))
		if err := lease.Release(); err != nil || now <= permits {
			return err
		}
		return fmt.Errorf("%d permits were in use", now)
	})
	if err != nil {
		return err
	}
	var why *sqlock.Error
	_, err = registry.AcquirePermits(context.Background(), "scanner", permits+1, permits+1)
	if !errors.As(err, &why) || why.Code != sqlock.Conflict {
		return fmt.Errorf("more permits than there are were taken: %v", err)
	}
	fmt.Printf("%d goroutines had %d permits\n", workers, permits)
	return nil
}

// A lease is renewed until it is released, which may be left to the garbage
// collector.
func keep(registry *sqlock.Registry) error {
	if err := forget(registry); err != nil {
		return err
	}
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); {
		runtime.GC()
		if lease, err := registry.TryAcquire("kept"); err == nil {
			fmt.Println("a lease was renewed, and released when it was forgotten")
			return lease.Release()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("a lease that was forgotten is held for ever")
}

func forget(registry *sqlock.Registry) error {
	lease, err := registry.Acquire(context.Background(), "kept")
	if err != nil {
		return err
	}
	left := lease.Remaining()
	for now := left; now <= left; now = lease.Remaining() {
		if now == 0 {
			return errors.New("a lease was not renewed")
		}
		left = now
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

// Two read together, one of which was a writer.
func read(registry *sqlock.Registry) error {
	writer, err := registry.Acquire(context.Background(), "prices")
	if err != nil {
		return err
	}
	if err := writer.Downgrade(); err != nil {
		return err
	}
	reader, err := registry.AcquireShared(context.Background(), "prices")
	if err != nil {
		return err
	}
	if writer.Remaining() == 0 || reader.Remaining() == 0 {
		return errors.New("readers exclude each other")
	}
	if err := writer.Release(); err != nil {
		return err
	}
	fmt.Println("a writer became a reader, and another one read, too")
	return reader.Release()
}

func wait(registry *sqlock.Registry) error {
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
