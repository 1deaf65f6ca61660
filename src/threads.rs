//! Work on rows by several threads that end before the call returns. On the
//! host's threads rather than the standard library's, which end the process when
//! memory for one is short; here those that did start do the work.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// No call starts more.
pub(crate) const MOST: usize = 256;

/// The threads that a call with `rows` rows uses of the `threads` it may.
pub(crate) fn used(rows: usize, threads: usize) -> usize {
    threads.clamp(1, MOST).min(rows.max(1))
}

struct Shared<'a> {
    rows: usize,
    next_row: AtomicUsize,
    next_thread: AtomicUsize,
    work: &'a (dyn Fn(usize, usize) + Sync),
}

impl Shared<'_> {
    fn run(&self) {
        // Relaxed: rows share nothing, and the joins order what comes after.
        let thread = self.next_thread.fetch_add(1, Ordering::Relaxed);
        loop {
            let row = self.next_row.fetch_add(1, Ordering::Relaxed);
            if row >= self.rows {
                return;
            }
            (self.work)(thread, row);
        }
    }
}

extern "C" fn thread_main(shared: *mut c_void) -> *mut c_void {
    // SAFETY: for_each_row passes its Shared, which lives until this thread is
    // joined.
    unsafe { &*shared.cast::<Shared<'_>>() }.run();
    ptr::null_mut()
}

/// The threads that were started, joined when dropped.
struct Started {
    ids: [MaybeUninit<libc::pthread_t>; MOST],
    len: usize,
}

impl Drop for Started {
    fn drop(&mut self) {
        for id in &self.ids[..self.len] {
            // SAFETY: written by a pthread_create that succeeded; joined once.
            unsafe { libc::pthread_join(id.assume_init(), ptr::null_mut()) };
        }
    }
}

/// Calls `work(thread, row)` once for each row, on up to `used(rows, threads)`
/// threads, this one among them. `thread` counts them from 0; no two calls with
/// the same one run at the same time.
pub(crate) fn for_each_row(rows: usize, threads: usize, work: &(dyn Fn(usize, usize) + Sync)) {
    let shared = Shared {
        rows,
        next_row: AtomicUsize::new(0),
        next_thread: AtomicUsize::new(0),
        work,
    };
    let mut started = Started {
        ids: [MaybeUninit::uninit(); MOST],
        len: 0,
    };
    for _ in 1..used(rows, threads) {
        let argument = ptr::from_ref(&shared).cast_mut().cast();
        let id = started.ids[started.len].as_mut_ptr();
        // SAFETY: `id` is written to by the call only; `shared` is Sync, and
        // outlives the thread, since `started` is dropped, and joins, first.
        if unsafe { libc::pthread_create(id, ptr::null(), thread_main, argument) } != 0 {
            break;
        }
        started.len += 1;
    }
    shared.run();
    drop(started);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Two rows that wait for each other need two threads.
    #[test]
    fn rows_are_shared_among_threads() {
        let arrived = AtomicUsize::new(0);
        let end = Instant::now() + Duration::from_secs(60);
        for_each_row(2, 2, &|_, _| {
            arrived.fetch_add(1, Ordering::SeqCst);
            while arrived.load(Ordering::SeqCst) < 2 {
                assert!(Instant::now() < end, "one thread does it all");
                std::thread::yield_now();
            }
        });
    }
}
