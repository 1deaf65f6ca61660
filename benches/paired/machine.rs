//! What the figures were measured on.

use std::fs;
use std::process::Command;

use crate::report::Facts;
use crate::scan;

/// The machine and the tools, a line each.
pub fn describe() -> Facts {
    let mut facts = Facts::default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    facts.add("CPU", format!("{}, {cores} cores", cpu()));
    facts.add("bare scan", scan::instructions().to_owned());
    facts.add("C library", libc_version());
    facts.add("Rust", first_line("rustc"));
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    // As build.rs saw it: cargo compiles this file anew when CFLAGS change.
    let flags = option_env!("CFLAGS").unwrap_or("-O3 (make bench adds -march=native)");
    facts.add("C reference", format!("{}, {flags}", first_line(&cc)));
    if let Ok(load) = fs::read_to_string("/proc/loadavg") {
        let load = load.split(' ').next().unwrap_or("").to_owned();
        facts.add("load at start", load);
    }
    facts
}

fn cpu() -> String {
    fs::read_to_string("/proc/cpuinfo")
        .ok()
        .and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(": ")?.1.to_owned())
        })
        .unwrap_or_else(|| format!("unknown {}", std::env::consts::ARCH))
}

fn libc_version() -> String {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: returns a C string that lives as long as the process.
        let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        format!("glibc {}", version.to_string_lossy())
    }
    #[cfg(not(target_env = "gnu"))]
    "not glibc".to_owned()
}

fn first_line(program: &str) -> String {
    Command::new(program)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.lines().next().map(str::to_owned)
        })
        .unwrap_or_else(|| format!("{program}: cannot be run"))
}
