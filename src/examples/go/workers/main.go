// workers: goroutines that take turns at a lock, and never meet; that share
// permits, and read together; a lease that is forgotten, and one that outlives
// its registry; and a task that waits for itself.
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
	for _, take := range []func(*sqlock.Registry) error{turns, usePermits, wait, read, keep, waitForItself, refuse, outlive(url), closeOnce} {
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
	if left < time.Second || left > 10*time.Second {
		return fmt.Errorf("a lease of 10 s has %s left", left)
	}
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
	os.Stdin.Close() // descriptor 0 is free then
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err = registry.Acquire(ctx, "workers"); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("a wait outlived its context: %v", err)
	}
	cancel()
	if _, err = registry.Acquire(ctx, "free"); err == nil {
		return errors.New("a lock was taken for a context that is done")
	}
	fmt.Println("a wait ends with its context")
	return lease.Release()
}

// hasCode returns nil if the error has that code, and otherwise what is wrong.
func hasCode(err error, code int, what string) error {
	var why *sqlock.Error
	if errors.As(err, &why) && why.Code == code {
		return nil
	}
	return fmt.Errorf("%s: %v", what, err)
}

// A task that waits for its own lease is told, by whichever context of its.
func waitForItself(registry *sqlock.Registry) error {
	task := sqlock.Task(context.Background())
	lease, err := registry.Acquire(task, "itself")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(task, time.Minute)
	defer cancel()
	_, err = registry.Acquire(ctx, "itself")
	if err = hasCode(err, sqlock.Deadlock, "a task waited for itself"); err != nil {
		return err
	}
	brief, end := context.WithTimeout(sqlock.Task(context.Background()), 50*time.Millisecond)
	defer end()
	if _, err = registry.Acquire(brief, "itself"); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("another task did not wait: %v", err)
	}
	lease.Detach()
	given, over := context.WithTimeout(task, 50*time.Millisecond)
	defer over()
	if _, err = registry.Acquire(given, "itself"); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("a task that gave its lease away did not wait: %v", err)
	}
	fmt.Println("a task that waits for itself is told")
	return lease.Release()
}

func refuse(registry *sqlock.Registry) error {
	for _, name := range []string{"a\x00b", "\xff"} {
		_, err := registry.TryAcquire(name)
		if err = hasCode(err, sqlock.Invalid, "a name was cut"); err != nil {
			return err
		}
	}
	_, err := sqlock.Open("sqlite:x\x00y")
	if err = hasCode(err, sqlock.Invalid, "a URL was cut"); err != nil {
		return err
	}
	_, err = registry.AcquirePermits(context.Background(), "none", permits, 0)
	return hasCode(err, sqlock.Invalid, "no permits were taken")
}

// A lease may outlive its registry, which has released it.
func outlive(url string) func(*sqlock.Registry) error {
	return func(registry *sqlock.Registry) error {
		other, err := sqlock.Open(url)
		if err != nil {
			return err
		}
		lease, err := other.Acquire(context.Background(), "outlives")
		if err != nil {
			return err
		}
		if err := other.Close(); err != nil {
			return err
		}
		if lease.Remaining() != 0 || lease.Token() != 0 || lease.Downgrade() == nil {
			return errors.New("a lease is held by a registry that is closed")
		}
		if err := lease.Release(); err != nil {
			return err
		}
		_, err = other.Acquire(context.Background(), "outlives")
		if err = hasCode(err, sqlock.Invalid, "a registry that is closed was used"); err != nil {
			return err
		}
		next, err := registry.TryAcquire("outlives")
		if err != nil {
			return err
		}
		fmt.Println("a lease ended with its registry")
		return next.Release()
	}
}

// A registry that cannot release what it holds is closed all the same, and a
// lease that cannot be released says so, whenever it is asked.
func closeOnce(*sqlock.Registry) error {
	folder, err := os.MkdirTemp("", "workers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	url := "sqlite:" + folder + "/locks.db"
	if err = sqlock.CreateSchema(url); err != nil {
		return err
	}
	registry, err := sqlock.Open(url)
	if err != nil {
		return err
	}
	if _, err = registry.Acquire(context.Background(), "lost"); err != nil {
		return err
	}
	lease, err := registry.Acquire(context.Background(), "lost, too")
	if err != nil {
		return err
	}
	if err = os.Remove(folder + "/locks.db"); err != nil {
		return err
	}
	if lease.Release() == nil || lease.Release() == nil {
		return errors.New("a lease was released in a file that is gone")
	}
	if registry.Close() == nil {
		return errors.New("a lock was released in a file that is gone")
	}
	return registry.Close()
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
