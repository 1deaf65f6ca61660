//! What was run, and on what.

use std::process::Command;

#[path = "../../tests/common/facts.rs"]
mod facts;

/// The processor, the C library and the compiler.
pub fn describe() -> String {
    format!(
        "{}; {}; {}",
        facts::cpu(),
        facts::libc_version(),
        facts::version_of("rustc")
    )
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
