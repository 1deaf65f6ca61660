//! What the figures were measured on.

use std::fs;

use crate::report::Facts;
use crate::scan;

#[path = "../../tests/common/facts.rs"]
mod facts;

/// The machine and the tools, a line each.
pub fn describe() -> Facts {
    let mut described = Facts::default();
    described.add("CPU", facts::cpu());
    described.add("bare scan", scan::instructions().to_owned());
    described.add("C library", facts::libc_version());
    described.add("Rust", facts::version_of("rustc"));
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    // As build.rs saw it: cargo compiles this file anew when CFLAGS change.
    let flags = option_env!("CFLAGS").unwrap_or("-O3 (make bench adds -march=native)");
    described.add(
        "C reference",
        format!("{}, {flags}", facts::version_of(&cc)),
    );
    if let Ok(load) = fs::read_to_string("/proc/loadavg") {
        let load = load.split(' ').next().unwrap_or("").to_owned();
        described.add("load at start", load);
    }
    described
}
