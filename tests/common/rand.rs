//! A scripted `rand()` for the whole binary: the library and the C code beside
//! it see the same values, and every call is counted.
//!
//! The script is the thread's own, so tests may run side by side. Outside a
//! script a call ends the process: whoever draws there was not meant to.

#![allow(dead_code, reason = "each binary takes what it needs")]

use std::cell::Cell;
use std::ffi::c_int;

/// The largest value of the host's `rand()`.
pub const RAND_MAX: c_int = 0x7fff_ffff;

/// Raw values at the ends, in the middle, and what only a program's own `rand()`
/// would give: values below 0.
pub const EDGES: [c_int; 9] = [
    0,
    RAND_MAX / 2,
    RAND_MAX - 1,
    RAND_MAX,
    1,
    RAND_MAX / 2 + 1,
    RAND_MAX - 64,
    -1,
    c_int::MIN,
];

#[derive(Clone, Copy)]
struct Script {
    /// What rand() gives; None outside a script.
    value: Option<c_int>,
    calls: usize,
}

thread_local! {
    static SCRIPT: Cell<Script> = const { Cell::new(Script { value: None, calls: 0 }) };
}

/// Takes the place of the C library's, for this binary and all that is linked
/// into it.
#[unsafe(no_mangle)]
extern "C" fn rand() -> c_int {
    let script = SCRIPT.get();
    SCRIPT.set(Script {
        calls: script.calls + 1,
        ..script
    });
    script.value.expect("rand() outside a script")
}

/// Runs `call` while every `rand()` gives `raw`; its result, and how often it
/// called `rand()`.
pub fn scripted<T>(raw: c_int, call: impl FnOnce() -> T) -> (T, usize) {
    SCRIPT.set(Script {
        value: Some(raw),
        calls: 0,
    });
    let result = call();
    let calls = SCRIPT.get().calls;
    SCRIPT.set(Script {
        value: None,
        calls: 0,
    });
    (result, calls)
}

/// What the script gives, without a call.
pub fn scripted_value() -> Option<c_int> {
    SCRIPT.get().value
}

/// `count` raw values spread evenly over [0, RAND_MAX], both ends among them.
pub fn spread(count: c_int) -> impl Iterator<Item = c_int> {
    let last = i64::from(count - 1);
    (0..=last).map(move |k| (k * i64::from(RAND_MAX) / last) as c_int)
}
