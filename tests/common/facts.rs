//! What something was run on, for benches and campaigns.

use std::fs;
use std::process::Command;

/// The processor and its cores.
pub fn cpu() -> String {
    let name = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(": ")?.1.to_owned())
    });
    let name = name.unwrap_or_else(|| format!("unknown {}", std::env::consts::ARCH));
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{name}, {cores} cores")
}

/// The C library and its version.
pub fn libc_version() -> String {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: returns a C string that lives as long as the process.
        let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        format!("glibc {}", version.to_string_lossy())
    }
    #[cfg(not(target_env = "gnu"))]
    "not glibc".to_owned()
}

/// What a program says of its own version.
pub fn version_of(program: &str) -> String {
    let output = Command::new(program).arg("--version").output();
    let text = output.map_or(String::new(), |output| {
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    let first = text.lines().next().map(str::to_owned);
    first.unwrap_or_else(|| format!("{program}: cannot be run"))
}
