//! What was run, and on what.

use std::fs;
use std::process::Command;

/// The processor, the C library and the compiler of the C reference.
pub fn describe() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(": ")?.1.to_owned())
    });
    let cpu = cpu.unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!(
        "{cpu}, {cores} cores; {}; {}",
        libc_version(),
        first_line("rustc", "--version")
    )
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

fn first_line(program: &str, argument: &str) -> String {
    let output = Command::new(program).arg(argument).output();
    let text = output.map_or(String::new(), |output| {
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    text.lines().next().unwrap_or(program).to_owned()
}

/// The commit of the source, and whether what decides tokens was changed since.
pub fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git")
            .args(["-C", env!("CARGO_MANIFEST_DIR")])
            .args(arguments)
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then_some(text)
    };
    let Some(id) = git(&["rev-parse", "HEAD"]) else {
        return "not a git repository".to_owned();
    };
    let decisive = [
        "status",
        "--porcelain",
        "--",
        "src",
        "c_tests/reference.c",
        "tests/common",
    ];
    match git(&decisive) {
        Some(changes) if changes.is_empty() => id,
        _ => format!("{id}, and uncommitted changes"),
    }
}
