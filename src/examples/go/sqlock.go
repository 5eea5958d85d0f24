// Package sqlock is libsqlock for Go, by cgo: a pattern to copy from, for other
// languages, too.
//
// Goroutines move between threads, so each lease is an owner of its own
// (SQLOCK_OWNED_BY_HANDLE): two goroutines exclude each other as two processes
// do.  A call that waits occupies a thread of the operating system; a program
// with thousands of waiters takes sqlock_request_acquire() instead.
package sqlock

/*
#cgo pkg-config: sqlock
#include <sqlock.h>
#include <sqlock/lease.h>
#include <sqlock/shared.h>
#include <stdlib.h>
*/
import "C"

import (
	"context"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Error is what the library answers: one of its codes, and one line of text.
type Error struct {
	Code    int
	Message string
}

func (e *Error) Error() string { return e.Message }

// The codes that a program asks for most.
const (
	Busy     = int(C.SQLOCK_EBUSY)
	Deadlock = int(C.SQLOCK_EDEADLOCK)
	Invalid  = int(C.SQLOCK_EINVAL)
	Lost     = int(C.SQLOCK_ELOST)
	Expired  = int(C.SQLOCK_EEXPIRED)
	Conflict = int(C.SQLOCK_ECONFLICT)
)

func failure(code C.int, err *C.sqlock_error) error {
	if code == 0 {
		return nil
	}
	if err.code == code {
		return &Error{int(code), C.GoString(&err.message[0])}
	}
	return &Error{int(code), C.GoString(C.sqlock_strerror(code))}
}

// cText is the text for C, to be freed.  One with a NUL inside would end there,
// and be another lock's name.
func cText(text string) (*C.char, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return nil, &Error{Invalid, "a text has a NUL byte inside"}
	}
	return C.CString(text), nil
}

type taskKey struct{}

var tasks uint64

// Task makes a context for one task, a goroutine that does nothing else while it
// waits: Go does not tell one from another.  A task that waits for a lock which
// it holds itself gets an error with the code Deadlock, and so do those that
// wait crosswise; without this they wait until their contexts are done.
func Task(ctx context.Context) context.Context {
	return context.WithValue(ctx, taskKey{}, atomic.AddUint64(&tasks, 1))
}

func options() C.sqlock_options {
	var o C.sqlock_options
	o.size = C.size_t(unsafe.Sizeof(o))
	o.ownership = C.SQLOCK_OWNED_BY_HANDLE
	return o
}

// CreateSchema creates the lock table where it does not exist yet.
func CreateSchema(url string) error {
	var err C.sqlock_error
	text, wrong := cText(url)
	if wrong != nil {
		return wrong
	}
	defer C.free(unsafe.Pointer(text))
	o := options()
	return failure(C.sqlock_schema_create(text, &o, C.SQLOCK_LAYOUT_SQLOCK, &err), &err)
}

// Registry is a table of locks, opened; any goroutine may use it.
type Registry struct {
	handle   *C.sqlock_registry
	use      sync.RWMutex // guards isClosed, and is held by calls of leases
	isClosed bool
}

// Open opens the lock table that the URL leads to.
func Open(url string) (*Registry, error) {
	var err C.sqlock_error
	r := &Registry{}
	text, wrong := cText(url)
	if wrong != nil {
		return nil, wrong
	}
	defer C.free(unsafe.Pointer(text))
	o := options()
	code := C.sqlock_registry_open(&r.handle, text, &o, &err)
	if code != 0 {
		return nil, failure(code, &err)
	}
	return r, nil
}

// Close releases what is held; the leases are over.  No Acquire may be running;
// a later one is refused.
func (r *Registry) Close() error {
	var err C.sqlock_error
	r.use.Lock()
	defer r.use.Unlock()
	if r.isClosed {
		return nil
	}
	code := C.sqlock_registry_close(r.handle, &err)
	r.isClosed = code != C.SQLOCK_EFORK && code != C.SQLOCK_EINUSE
	return failure(code, &err)
}

// Lease is a lock that is held: renewed in the background until it is released
// or lost.
type Lease struct {
	registry *Registry
	handle   *C.sqlock_lock // freed with the registry; nil: released
	once     sync.Once
	result   error
}

// share is how a lock is taken: alone, or with others.
type share struct {
	mode            C.sqlock_mode
	permits, weight C.uint32_t
}

var alone = share{mode: C.SQLOCK_EXCLUSIVE}

// Acquire waits for the lock until the context is done.
func (r *Registry) Acquire(ctx context.Context, name string) (*Lease, error) {
	return r.acquire(ctx, name, C.SQLOCK_FOREVER, alone)
}

// TryAcquire does not wait: where another owner has the lock, the error's code
// is Busy.
func (r *Registry) TryAcquire(name string) (*Lease, error) {
	return r.acquire(context.Background(), name, 0, alone)
}

// AcquireShared waits as Acquire does, for the lock with other readers.
func (r *Registry) AcquireShared(ctx context.Context, name string) (*Lease, error) {
	return r.acquire(ctx, name, C.SQLOCK_FOREVER, share{mode: C.SQLOCK_SHARED})
}

// AcquirePermits waits as Acquire does, for weight of the lock's permits, all or
// none.  How many there are is what the lock's row says, and permits if that has
// no number.  An error with the code Conflict says that they are fewer than weight.
func (r *Registry) AcquirePermits(ctx context.Context, name string, permits, weight uint32) (*Lease, error) {
	if weight == 0 { // to C, one
		return nil, &Error{Invalid, "0 permits to take"}
	}
	return r.acquire(ctx, name, C.SQLOCK_FOREVER,
		share{C.SQLOCK_SHARED, C.uint32_t(permits), C.uint32_t(weight)})
}

// above2 is a copy of the file's descriptor that is not one of the standard
// three: 0 is none to the library.
func above2(file *os.File) (int, error) {
	fd, _, failed := syscall.Syscall(syscall.SYS_FCNTL, file.Fd(), syscall.F_DUPFD_CLOEXEC, 3)
	if failed != 0 {
		return 0, failed
	}
	return int(fd), nil
}

func (r *Registry) acquire(ctx context.Context, name string, wait C.int64_t, as share) (*Lease, error) {
	var err C.sqlock_error
	// Close does not wait for those that wait, so the lock is not kept.
	r.use.RLock()
	isClosed := r.isClosed
	r.use.RUnlock()
	if isClosed {
		return nil, &Error{Invalid, "the registry is closed"}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	l := &Lease{registry: r}
	text, wrong := cText(name)
	if wrong != nil {
		return nil, wrong
	}
	defer C.free(unsafe.Pointer(text))
	if code := C.sqlock_obtain(&l.handle, r.handle, text, &err); code != 0 {
		return nil, failure(code, &err)
	}

	var how C.sqlock_acquire_options
	how.size = C.size_t(unsafe.Sizeof(how))
	how.auto_renew = true
	how.mode, how.permits, how.weight = as.mode, as.permits, as.weight
	if task, isTask := ctx.Value(taskKey{}).(uint64); isTask {
		how.actor = C.uint64_t(task)
	}
	if ctx.Done() != nil {
		// The wait ends once the pipe's other end is closed.
		reader, writer, failed := os.Pipe()
		if failed != nil {
			C.sqlock_drop(l.handle, nil)
			return nil, failed
		}
		fd, failed := above2(reader)
		reader.Close()
		if failed != nil {
			writer.Close()
			C.sqlock_drop(l.handle, nil)
			return nil, failed
		}
		defer syscall.Close(fd)
		how.cancel_fd = C.int(fd)
		over := make(chan struct{})
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			select {
			case <-ctx.Done():
			case <-over:
			}
			writer.Close()
		}()
		defer func() {
			close(over)
			<-watched
		}()
	}
	code := C.sqlock_acquire(l.handle, wait, &how, &err)
	if code != 0 {
		C.sqlock_drop(l.handle, nil)
		if code == C.SQLOCK_ECANCELED && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, failure(code, &err)
	}
	// One that is forgotten is released with the garbage.
	runtime.SetFinalizer(l, func(l *Lease) { go l.Release() })
	return l, nil
}

// Token is the fencing token: pass it along with each write, and refuse smaller
// ones there.
func (l *Lease) Token() int64 {
	var token C.int64_t
	l.with(func(lock *C.sqlock_lock) { token = C.sqlock_token(lock) })
	return int64(token)
}

// with calls f with the handle, if that is there.
func (l *Lease) with(f func(lock *C.sqlock_lock)) {
	defer runtime.KeepAlive(l)
	l.registry.use.RLock()
	defer l.registry.use.RUnlock()
	if !l.registry.isClosed && l.handle != nil {
		f(l.handle)
	}
}

// Remaining is how long the holder may believe: ask before each side effect.
func (l *Lease) Remaining() time.Duration {
	var ms C.int64_t
	l.with(func(lock *C.sqlock_lock) { ms = C.sqlock_remaining_ms(lock) })
	return time.Duration(ms) * time.Millisecond
}

// Downgrade lets readers in: nobody has the lock alone in between.
func (l *Lease) Downgrade() error {
	var err C.sqlock_error
	code := C.int(C.SQLOCK_EOWNER)
	l.with(func(lock *C.sqlock_lock) { code = C.sqlock_downgrade(lock, &err) })
	return failure(code, &err)
}

// Detach says that another task will release the lease: this one may wait for
// the lock again.
func (l *Lease) Detach() {
	l.with(func(lock *C.sqlock_lock) { C.sqlock_set_actor(lock, 0) })
}

// Release gives the lock back, unless closing the registry has.  An error with
// the code Lost says that somebody else has had it.  No other call of this lease
// may be running.
func (l *Lease) Release() error {
	l.once.Do(func() {
		runtime.SetFinalizer(l, nil)
		l.with(func(lock *C.sqlock_lock) {
			var err C.sqlock_error
			l.result = failure(C.sqlock_release(lock, &err), &err)
			C.sqlock_drop(lock, nil)
			l.handle = nil
		})
	})
	return l.result
}
